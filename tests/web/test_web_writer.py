"""One writer that groups what arrives together, writers that take turns, and memories that may be out of date."""

import asyncio
import itertools
import subprocess
import sys
import threading
import time

import pytest
from taking_part import json_answers

from dialometer.web.server.submissions import MAX_BATCH, SentScreen, ServerBusy, Writer
from dialometer.web.server.turns import TurnTakingStore, WriteLock


def test_what_arrives_while_the_writer_works_is_done_together():
    sizes = []
    have_arrived = threading.Event()

    def work(batch):
        sizes.append(len(batch))
        have_arrived.wait(60)
        return [job * 2 for job in batch]

    async def main():
        writer = Writer(work)
        futures = [writer.put(n) for n in range(600)]
        have_arrived.set()
        results = await asyncio.gather(*futures)
        writer.stop()
        return results

    assert asyncio.run(main()) == [2 * n for n in range(600)]
    assert len(sizes) <= 5
    assert max(sizes) <= MAX_BATCH
    assert sum(sizes) == 600


def test_an_error_is_told_to_whom_it_concerns():
    def work(batch):
        return [ValueError(f"bad {job}") if job % 2 else job for job in batch]

    async def main():
        writer = Writer(work)
        results = await asyncio.gather(*(writer.put(n) for n in range(4)), return_exceptions=True)
        writer.stop()
        return results

    results = asyncio.run(main())
    assert [results[0], results[2]] == [0, 2]
    assert str(results[1]) == "bad 1"
    assert str(results[3]) == "bad 3"


def test_a_round_that_breaks_down_does_not_stop_the_writer():
    n_rounds = 0

    def work(batch):
        nonlocal n_rounds
        n_rounds += 1
        if n_rounds == 1:
            raise RuntimeError("broken")
        return list(batch)

    async def main():
        writer = Writer(work)
        with pytest.raises(RuntimeError, match="broken"):
            await writer.put(1)
        assert await writer.put(2) == 2
        writer.stop()

    asyncio.run(main())


def test_stopping_does_what_is_waiting_and_refuses_what_comes_after():
    done = []

    def work(batch):
        time.sleep(0.02)
        done.extend(batch)
        return list(batch)

    async def main():
        writer = Writer(work)
        futures = [writer.put(n) for n in range(300)]
        await asyncio.get_running_loop().run_in_executor(None, writer.stop)
        with pytest.raises(ServerBusy, match="stopping"):
            writer.put(301)
        return await asyncio.gather(*futures)

    assert asyncio.run(main()) == list(range(300))
    assert done == list(range(300))


def test_a_client_that_went_away_disturbs_nobody():
    async def main():
        writer = Writer(lambda batch: [time.sleep(0.02) or job for job in batch])
        gone, stays = writer.put(1), writer.put(2)
        gone.cancel()
        assert await stays == 2
        writer.stop()

    asyncio.run(main())


def test_how_busy_the_writer_is():
    release = threading.Event()

    async def main():
        writer = Writer(lambda batch: [release.wait(60) for _ in batch])
        assert (writer.n_waiting, writer.busy_s) == (0, 0.0)
        first = writer.put(1)
        async with asyncio.timeout(60):
            while not writer.busy_s:
                await asyncio.sleep(0.01)
        second = writer.put(2)
        assert writer.n_waiting == 1
        release.set()
        await asyncio.gather(first, second)
        writer.stop()

    asyncio.run(main())


def test_threads_take_turns_in_the_order_of_arrival(tmp_path):
    turns = WriteLock(tmp_path / "turns")
    order = []

    def wait(n):
        with turns.turn(60):
            order.append(n)

    with turns.turn(60):
        threads = []
        for n in range(8):
            thread = threading.Thread(target=wait, args=(n,))
            thread.start()
            threads.append(thread)
            while len(turns._waiting) <= n:
                time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert order == list(range(8))
    turns.close()


COUNTING = """
import sys, time
from pathlib import Path
from dialometer.web.server.turns import WriteLock
turns = WriteLock(Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for _ in range(200):
    with turns.turn(60):
        with open(sys.argv[2], "a") as file:
            file.write(sys.argv[3])
        time.sleep(0.0005)
"""


def test_processes_pass_the_turn_to_each_other(tmp_path):
    log = tmp_path / "log"
    command = [sys.executable, "-c", COUNTING, str(tmp_path / "turns"), str(log)]
    both = [subprocess.Popen([*command, name], stdin=-1, stdout=-1, text=True) for name in "ab"]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in both:
        assert one.wait(300) == 0
        one.stdin.close()
        one.stdout.close()
    written = log.read_text()
    assert sorted(written) == ["a"] * 200 + ["b"] * 200
    # While both are at work neither is kept out: each has many turns before the other has had all of its own. Which of them
    # begins, and how long the machine lets one of them stand, is chance.
    n_changes = sum(one != next_one for one, next_one in itertools.pairwise(written))
    assert n_changes >= 20


def test_a_process_that_dies_in_its_turn_gives_it_back(tmp_path):
    code = COUNTING.replace("time.sleep(0.0005)", "print('mine', flush=True); time.sleep(60)")
    command = [sys.executable, "-c", code, str(tmp_path / "turns"), str(tmp_path / "log"), "x"]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as holder:
        holder.stdout.readline()
        holder.stdin.write("go\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "mine\n"
        turns = WriteLock(tmp_path / "turns")
        got = threading.Event()

        def take():
            with turns.turn(60):
                got.set()

        taker = threading.Thread(target=take, daemon=True)
        taker.start()
        assert not got.wait(0.2)
        holder.kill()
        assert got.wait(60)
        taker.join(60)
        turns.close()


def test_two_servers_on_one_database_agree_about_where_a_session_stands(make_study, site, database_url):
    study = make_study()
    one, two = site(study, database_url), site(study, database_url)
    here = one.open_api("judge")
    there = type(here)(two.client, here.token, here.session_id)
    n_judgments = 0
    for n in range(60):
        shown = (here if n % 2 else there).screen()
        if shown["kind"] == "done":
            break
        by = here if n % 3 else there
        answer = by.submit(shown["screen"], json_answers(study, shown))
        assert (answer.status_code, answer.json()["outcome"]) == (200, "stored")
        n_judgments += answer.json()["n_judgments"]
        repeated = (there if by is here else here).submit(shown["screen"], json_answers(study, shown))
        assert repeated.json()["outcome"] == "repeated"
    assert one.only_session().state == "completed"
    assert n_judgments == len(list(one.store.records.judgments()))


def test_a_session_that_ended_elsewhere_is_not_written_to(make_study, site):
    study = make_study()
    there = site(study)
    program = there.open_api()
    program.answer(study)
    shown = program.screen()
    there.store.withdrawals.withdraw(program.session_id, there.app.service.flow.clock())
    answer = program.submit(shown["screen"], json_answers(study, shown))
    assert answer.status_code in (401, 409)
    assert not list(there.store.records.visits(program.session_id))


def test_many_screens_of_one_session_at_once_store_one(make_study, site):
    study = make_study("avatar", n_items=12)
    there = site(study)
    program = there.open_api()
    shown = program.walk_to(study, "item")
    body = {"screen": shown["screen"], "answers": json_answers(study, shown), "shown_at_ms": 1}

    async def send_all():
        service = there.app.service
        sent = [
            SentScreen(program.token, body["screen"], f"token-{n % 3}", body["answers"], shown_at_ms=1)
            for n in range(9)
        ]
        return await asyncio.gather(*(service.submit(one) for one in sent))

    outcomes = [taken.receipt.outcome for taken in there.client.portal.call(send_all)]
    assert outcomes.count("stored") == 1
    assert outcomes.count("repeated") == 2
    assert outcomes.count("outdated") == 6
    assert len(list(there.store.records.judgments())) == len(shown["fields"])


def test_a_double_click_on_more_draws_once(make_study, site):
    study = make_study("avatar", n_items=40)
    if study.spec.design.items_per_rater != "unlimited":
        pytest.skip("this template gives a fixed number of items")
    there = site(study)
    program = there.open_api()
    shown = program.walk_to(study, "more")
    before = there.only_session().draw

    async def twice():
        service = there.app.service
        sent = SentScreen(program.token, shown["screen"], "more-token", {"more": "yes"}, shown_at_ms=1)
        return await asyncio.gather(service.submit(sent), service.submit(sent))

    outcomes = [taken.receipt.outcome for taken in there.client.portal.call(twice)]
    assert sorted(outcomes) == ["repeated", "stored"]
    after = there.only_session().draw
    n_new = sum(len(items) for items in after.items.values()) - sum(len(items) for items in before.items.values())
    assert n_new == study.spec.design.batch_size
    assert program.screen()["kind"] == "item"


def test_a_refused_screen_does_not_hold_up_the_others(make_study, site):
    study = make_study()
    there = site(study)
    programs = [there.open_api(f"p{n}") for n in range(4)]

    async def send_all():
        service = there.app.service
        # Two sessions use the same token for their submission: only one of them can be right.
        tokens = ["same", "same", "c", "d"]
        sent = [
            SentScreen(program.token, "consent", token, {"consent": "agree"}, shown_at_ms=1)
            for program, token in zip(programs, tokens, strict=True)
        ]
        return await asyncio.gather(*(service.submit(one) for one in sent), return_exceptions=True)

    results = there.client.portal.call(send_all)
    outcomes = [type(r).__name__ if isinstance(r, Exception) else r.receipt.outcome for r in results]
    assert outcomes == ["stored", "SubmissionRefused", "stored", "stored"]


@pytest.mark.postgres
def test_a_store_on_postgresql_needs_no_turns(postgres_url, tmp_path):
    with TurnTakingStore.open(postgres_url) as store:
        assert store._turns is None
        with store.database.writing() as connection:
            connection.exec_driver_sql("SELECT 1")
    with TurnTakingStore.open(tmp_path / "s.db") as store:
        assert store._turns is not None
        with store.database.writing() as connection:
            connection.exec_driver_sql("SELECT 1")
