"""What pages cost the server beside the JSON routes that do the same: ``python -m bench.pages [--templates likert acute]``.

Half of the raters answer by forms, the other half by JSON, in turns and on one server, so that the ratios hold on a busy
machine too. Processor time is the server's own, all its threads together. Each page is looked at once before it is
measured: what the first rater costs who sees an item in some order, all later ones do not.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from bench._human_pace import page_requests
from bench.server import answers_of, arrive, cpu_s, json_request, make_study, send_all, serving
from dialometer.flow.engine import Flow
from dialometer.storage.store import Store

SHOWN = ("page", "JSON screen")
ROUTES = ("form", "JSON submission", *SHOWN)


def requests_of(flow: Flow, url: str, sessions: list[tuple[str, str]]) -> list[dict[str, list[bytes]]]:
    """For every rater, what is sent to each route in order; the first half of the raters has pages."""
    host = urlsplit(url).netloc
    held = flow.store.sessions.several([session_id for session_id, _ in sessions])
    screens = [answers_of(flow.study, flow.path(held[own]), n, seed=1) for n, (own, _) in enumerate(sessions, start=1)]
    half = len(sessions) // 2
    made = [
        {"form": posts, "page": [page] * len(posts)}
        for posts, page in page_requests(flow, url, sessions[:half], screens[:half])
    ]
    for (session_id, token), own in zip(sessions[half:], screens[half:], strict=True):
        bodies = [
            {"screen": key, "token": f"{session_id}/{key}", "answers": answers, "shown_at_ms": flow.clock()}
            for key, answers in own
        ]
        submit = [json_request(host, token, json.dumps(body).encode()) for body in bodies]
        show = f"GET /api/v1/session/screen HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        made.append({"JSON submission": submit, "JSON screen": [show] * len(submit)})
    return made


def measure(template: str, n_raters: int, n_rounds: int, n_screens: int) -> dict[str, float]:
    """Milliseconds of processor time for one request on each route."""
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder = Path(place) / "study"
        study = make_study(folder, template)
        with serving(folder, "", 1, "info") as (url, key, server), Store.open(folder / "study.db") as store:
            sessions = arrive(url, key, 2 * n_raters)
            raters = requests_of(Flow(study, store), url, sessions)
            used = dict.fromkeys(ROUTES, 0.0)
            for start in range(0, n_rounds * n_screens, n_screens):
                for route in ROUTES:
                    sent = [own[route][start : start + n_screens] for own in raters if route in own]
                    if route in SHOWN:
                        send_all(url, [own[:1] for own in sent])
                    before = sum(cpu_s(server.pid).values())
                    send_all(url, sent)
                    # The first round warms up.
                    used[route] += sum(cpu_s(server.pid).values()) - before if start else 0.0
            check_steps(store, [own for own, _ in sessions], n_rounds * n_screens)
    return {route: 1000 * seconds / (n_raters * (n_rounds - 1) * n_screens) for route, seconds in used.items()}


def check_steps(store: Store, sessions: list[str], n_sent: int) -> None:
    """All raters are as far as what they have sent; otherwise refusals were measured."""
    steps = {session.step for session in store.sessions.several(sessions).values()}
    if steps != {n_sent}:
        raise SystemExit(f"raters sent {n_sent} screens, and are at {sorted(steps)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--templates", nargs="+", default=["likert", "acute"])
    parser.add_argument("--raters", type=int, default=100, help="of each kind")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--screens", type=int, default=3, help="that each rater sends in a round")
    parser.add_argument("--json", type=Path, help="where the figures go too")
    arguments = parser.parse_args()
    rows = []
    print(f"{'template':>12} " + " ".join(f"{route:>16}" for route in ROUTES) + "   form / JSON   page / JSON")
    for template in arguments.templates:
        ms = measure(template, arguments.raters, arguments.rounds, arguments.screens)
        form, page = ms["form"] / ms["JSON submission"], ms["page"] / ms["JSON screen"]
        rows.append({"template": template, **ms, "form_ratio": form, "page_ratio": page})
        figures = " ".join(f"{ms[route]:13.2f} ms" for route in ROUTES)
        print(f"{template:>12} {figures} {form:13.2f} {page:13.2f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps({"pages": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
