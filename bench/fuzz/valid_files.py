"""Valid files of every kind, small, as bytes by name: what the hostile ones are made from."""

from __future__ import annotations

import io
import json
import zipfile
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from dialometer.design.load import load_study
from dialometer.design.lock import freeze
from dialometer.design.templates import copy_template
from dialometer.errors import DialometerError
from dialometer.exchange.exports.archive import write_archive
from dialometer.exchange.exports.export import export_study
from dialometer.flow.engine import Flow
from dialometer.flow.simulated import EngineAccess
from dialometer.flow.study_check import check_all
from dialometer.learned.gaussian.evaluator import GaussianEvaluator
from dialometer.learned.gaussian.features import describe
from dialometer.learned.gaussian.kernel import KernelSettings, Posterior, fit_describer, likeness
from dialometer.model.dialogue import Dialogue, Turn
from dialometer.retrieval.knowledge_base import read_knowledge_base
from dialometer.retrieval.retriever import make_retriever
from dialometer.retrieval.saving import save_retriever
from dialometer.simulate.run import simulate
from dialometer.simulate.truth import draw_truth
from dialometer.storage.store import Store

Files = dict[str, bytes]


def _lines(*records: Any) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def _json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, indent=1).encode()


def of_folder(folder: Path) -> Files:
    """All files below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


_TURNS = [{"speaker": "User", "text": "Hello, who are you?"}, {"speaker": "Agent", "text": "I am Ann."}]
_CALL = {"name": "search", "arguments": {"query": "ferns"}, "result": "two"}
_EXCHANGE = [{"id": "A", "text": "hello"}, {"id": "B", "text": "hi there"}]

DIALOGUES: dict[str, Files] = {
    "jsonl": {
        "d.jsonl": _lines(
            {
                "id": "d1",
                "turns": _TURNS,
                "metadata": {"rating": 4, "user": "u1", "exchanges": [{"answers": ["a1"], "coreference": True}]},
            },
            {
                "id": "d2",
                "turns": [*_TURNS, {"speaker": "Zoë", "text": "é", "role": "person"}],
                "speakers": {"Zoë": "person"},
            },
            {
                "id": "d4",
                "turns": [*_TURNS, {"speaker": "Agent", "text": "Here.", "tool_calls": [_CALL]}],
                "system_prompt": "Be brief.",
            },
            {"id": "d3", "turns": [*_TURNS, *_TURNS], "metadata": {"rating": 1, "left_out_turns": [{"turn": 1}]}},
        )
    },
    "csv": {
        "d.csv": b'dialogue_id,speaker,text,role,rating\nd1,User,Hello,user,4\nd1,Agent,"Hi, you",agent,4\n'
        b"d2,User,Bye,,1\nd2,Agent,Bye,,1\n"
    },
    "convai2": {
        "d.json": _json(
            [
                {
                    "dialog_id": f"0x{n}",
                    "dialog": [
                        {"id": 0, "sender": "participant2", "text": "Hey"},
                        {"id": 1, "sender": "participant1", "text": "Hi", "sender_class": "Human"},
                    ],
                    "bot_profile": ["i bake."],
                    "eval_score": n,
                    "profile_match": 1,
                }
                for n in (1, 4)
            ]
        )
    },
    "crsarena": {
        "d.json": _json(
            [
                {
                    "conversation ID": "crs_1",
                    "agent": {"id": "crs", "type": "AGENT"},
                    "user": {"id": "u1", "type": "USER"},
                    "conversation": [
                        {"participant": "USER", "utterance": "a film?", "utterance ID": "u_0"},
                        {"participant": "AGENT", "utterance": "Heat", "utterance ID": "u_1"},
                    ],
                    "metadata": {"sentiment": "frustrated"},
                }
            ]
        )
    },
    "mdc": {
        "d.csv": b"Mode,Conversation,Exchange,Experiment,Q,A,Notes,BA1,BA2\nPER,1,1,TRAIN,Hello.,Hi.,,Hello!,Hey!\n"
        b'PER,1,2,TRAIN,What now?,Who knows.,BrokenExchange,,\nPER,1,3,TRAIN,"Who, then?",Me.,,I did.,\n'
    },
    "messages": {
        "d.jsonl": _lines(
            {
                "id": 1,
                "messages": [
                    {"role": "system", "content": "be brief"},
                    {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}],
                    },
                    {"role": "tool", "content": "4"},
                    {"role": "assistant", "content": "four"},
                ],
            },
            {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
        )
    },
    "parlai": {
        "d.jsonl": _lines(
            {"dialog": [_EXCHANGE, _EXCHANGE], "metadata_path": "x", "id": 3},
            {
                "dialogue_dicts": [{"speakers": ["A", "B"], "dialogue": _EXCHANGE}] * 2,
                "speakers_to_eval": ["B", "B"],
                "dialogue_ids": [1, 2],
            },
        )
    },
    "self_dialogue": {
        "d.jsonl": _lines(
            {"id": "s1", "topic": "music", "turns": ["hi", "hello", "you?"]}, {"id": "s2", "turns": ["a", "b"]}
        )
    },
    "text": {"d.txt": "# one\nUser: Hello\n  and more\nAgent: Hi\n\nA: what: this?\nB: é\n".encode()},
    "thred": {"d.txt": b"hello\thi there\tbye  |  music band\nwho\tme\n"},
}

RATED = {
    "r.jsonl": _lines(
        *(
            {
                "id": f"d{n}",
                "turns": [*_TURNS, {"speaker": "User", "text": f"more {n}"}, {"speaker": "Agent", "text": "yes"}],
                "metadata": {"rating": n % 5 + 1},
            }
            for n in range(6)
        )
    )
}
PAIRS = {
    "p.csv": b"first,second,better\nd0,d1,first\nd1,d2,d2\nd3,d4,tie\n",
    "p.jsonl": _lines({"first": "d0", "second": "d1", "better": "first"}, {"a": "d2", "b": "d3", "winner": "b"}),
}
SCORES = {"s.csv": b"id,system,score\nd1,x,0.5\nd2,x,-1\n"}
VERDICTS = {"ratings.jsonl": _lines({"id": "d1", "rating": 4, "smoothed": 3.5, "value": None, "is_believed": True})}
EXPERTS = {"e.csv": b"first,second,better,expert\nR0001/a,R0002/a,first,x\nR0001/b,R0002/b,cannot_tell,y\n"}

_HIT = "Mon Oct 21 08:51:04 PDT 2019,Mon Oct 21 08:52:34 PDT 2019,90"
IMPORTS: dict[str, Files] = {
    "long": {
        "j.csv": b"rater,item,system,criterion,value,answered_at,duration_s,factor_anchor,context,response,position,turn\n"
        b"a,i1,x,quality,4,2024-01-01T10:00:00Z,5,high,Hello,Hi,1,\nb,i1,y,quality,2,2024-01-01T10:01:00Z,5,low,Hello,Ho,1,\n"
        b"a,i2,x,fluency,5,,,high,Bye,So,2,\nb,i2,y,fluency,80%,,,low,Bye,Long,2,\n"
    },
    "long_semicolon": {
        "j.csv": b"Rater;Item;Criterion;Value;System\nann;i1;quality;4;x\nbob;i1;quality;NA;x\nann;i2;quality;2,5;y\n"
    },
    "long_jsonl": {
        "j.jsonl": _lines(
            *({"rater": f"r{n}", "item": "i1", "system": "x", "criterion": "q", "value": n} for n in range(4))
        )
    },
    "votes": {
        "j.csv": b"rater,model_a,model_b,winner,question_id,tstamp\na,x,y,model_a,1,1700000000\n"
        b"b,y,x,tie,1,1700000001.5\nc,x,z,z,2,1700000002\n"
    },
    "votes_jsonl": {
        "j.jsonl": _lines(
            {"judge": "a", "model_a": "x", "model_b": "y", "winner": "model_a"},
            {"judge": "b", "model_a": "y", "model_b": "x", "winner": "tie"},
        )
    },
    "choices": {
        "j.csv": b"rater,strategy,question,choice,gender,age,first\na,lengthy,quality,experimental,f,33,control\n"
        b"b,lengthy,quality,control,m,41,experimental\n"
    },
    "rankme": {
        "j.csv": b"_worker_id,_created_at,mr,mr_id,team1,team2,informativeness1,informativeness2,quality1,quality2,ref1,ref2\n"
        b"u1,10/21/2017 10:00:00,name[x],1,a,b,100,120,90,100,Text a,Text b\n"
        b"u2,10/21/2017 11:00:00,name[x],1,b,a,100,80,100,90,Text b,Text a\n"
    },
    "batch": {
        "j.csv": (
            "HITId,AssignmentId,WorkerId,AssignmentStatus,AcceptTime,SubmitTime,WorkTimeInSeconds,Input.item,Input.system,Answer.quality,Answer.taskAnswers\n"
            f'H1,A1,W1,Approved,{_HIT},d1,alpha,4,"[{{""kind"": {{""label"": ""chat""}}, ""ok"": {{""1"": true, ""2"": false}}}}]"\n'
            f'H1,A2,W2,Rejected,{_HIT},d1,alpha,2,\nH2,A3,W2,Approved,{_HIT},d2,alpha,3,"[{{""kind"": {{""label"": ""task""}}}}]"\n'
        ).encode()
    },
    "candidates": {
        "j.csv": b"question,answer,rater,rating,is_gold,rank_x,score_y\nWho?,Me,a,5,1,1,0.4\nWho?,You,b,2,0,2,0.3\n"
        b"Where?,Here,a,4,1,1,0.9\n",
    },
    "candidates_listed": {
        "j.json": _json(
            [
                {
                    "snippet_id": 1,
                    "last_turn": "Who?",
                    "predicted_answer": "Me",
                    "worker_ids": ["a", "b"],
                    "answers": [5, 4],
                    "isGold": 1,
                    "model1Score": 0.5,
                },
                {
                    "snippet_id": 1,
                    "last_turn": "Who?",
                    "predicted_answer": "You",
                    "worker_ids": ["a", "b"],
                    "answers": [1, 2],
                    "isGold": 0,
                    "model1Score": 0.1,
                },
            ]
        )
    },
    "dialogues_convai2": {
        "j.json": _json(
            [
                {
                    "dialog_id": f"0x{k}",
                    "dialog": [
                        {"id": 0, "sender": "participant1", "text": "Hi"},
                        {"id": 1, "sender": "participant2", "text": "Hello"},
                    ],
                    "eval_score": k,
                    "profile_match": 1,
                }
                for k in range(1, 4)
            ]
        )
    },
    "label_studio": {
        "j.json": _json(
            [
                {
                    "id": 1,
                    "data": {"item": "i1"},
                    "annotations": [
                        {
                            "completed_by": {"email": "a@example.org"},
                            "created_at": "2024-01-01T10:00:00Z",
                            "lead_time": 12.5,
                            "result": [
                                {
                                    "type": "rating",
                                    "from_name": "quality",
                                    "to_name": "option1",
                                    "value": {"rating": 4},
                                },
                                {
                                    "type": "choices",
                                    "from_name": "kind",
                                    "to_name": "option1",
                                    "value": {"choices": ["a"]},
                                },
                            ],
                        },
                        {"completed_by": 2, "was_cancelled": True, "result": []},
                    ],
                }
            ]
        )
    },
    "potato": {
        "ann/user_state.json": _json(
            {
                "user_id": "ann",
                "instance_id_to_label_to_value": {
                    "i1": [[{"schema": "quality", "name": "scale_4"}, "4"], [{"schema": "kind", "name": "a"}, "true"]],
                    "i2": {"quality": {"labels": {"scale_2": "true"}}},
                },
            }
        ),
        "bob/annotated_instances.jsonl": _lines(
            {"user_id": "bob", "instance_id": "i1", "label_annotations": {"quality": {"scale_3": "true"}}}
        ),
    },
}
OUTPUTS = {
    "o.csv": b"id,prompt,gpt,llama,topic,reference\n1,Hello,Hi,Hey,chat,Hi\n2,Bye,Ciao,Bye,chat,Bye\n",
    "o.jsonl": _lines(
        {
            "id": 1,
            "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "Hi"}],
            "one": "a",
            "two": "b",
        },
        {"id": 2, "messages": [{"from": "human", "value": "Hi"}], "one": "a", "two": [{"text": "b"}]},
    ),
}
KNOWLEDGE = {
    "kb.csv": b"id,question,answer,media\na1,Who are you?,I am Ann.,\na1,Your name?,I am Ann.,\na2,Where?,In Rome.,\n",
    "kb.jsonl": _lines(
        {"id": "a1", "answer": "I am Ann.", "questions": ["Who?"]}, {"id": "a2", "answer": "In Rome.", "questions": []}
    ),
    "mdc.csv": b",Context,Utterance,ID\n0,Who are you?,I am Ann.,1\n1,Where?,In Rome.,REPEAT\n",
}
RATINGS_OF_ANSWERS = {"c.csv": b"question,answer,rating\nWho?,a1,5\nWho?,I am Ann.,3\n"}
LISTS = {
    "people.csv": b"name,email,invitation\nAnn,a@example.org,\nBob,b@example.org,tok123\n",
    "invitations.txt": b"tok123\n# remark\ntok456\n",
    "blocked.txt": b"W1\nW2 # why\n",
    "prolific.json": _json({"study_id": "x", "bonuses": [{"sha256": "y", "state": "paid"}]}),
    "words.txt": b"hello\nbad word # why\n",
    "topics.txt": b"guitar album song\nfood eat cook\n",
    "topics.csv": b"topic,term,beta\n1,guitar,0.3\n1,album,0.2\n2,food,0.4\n",
}
REPLIES = {"replies.jsonl": _lines({"key": "k1", "text": "4", "n_in": 1}, {"key": "k2", "text": "5"})}


@cache
def template(name: str) -> Files:
    """A template's folder, frozen, with few items: what is read for every item alike need not be read often."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "study"
        few_items(name, folder)
        freeze(load_study(folder), folder, datetime(2026, 1, 1, tzinfo=UTC))
        return of_folder(folder)


def few_items(name: str, folder: Path) -> None:
    """A copy of a template with the fewest items that pass its check."""
    for n in (3, 6, 12, 24, 10_000):
        rmtree(folder, ignore_errors=True)
        copy_template(name, folder)
        for path in (folder / "items.jsonl", folder / "dialogues.jsonl"):
            if path.is_file():
                path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:n]))
        try:
            if not any(problem.severity == "error" for problem in check_all(folder)[1]):
                return
        except DialometerError:
            continue


@cache
def collected() -> dict[str, Files]:
    """The export of a small simulated study in each format, by its name."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "study"
        few_items("likert", folder)
        study = load_study(folder)
        with Store.open(folder / "study.db") as store:
            simulate(
                study,
                EngineAccess(Flow(study, store)),
                draw_truth(study, 7),
                n_raters=1,
                seed=7,
                start_ms=1_760_000_000_000,
            )
            for format in ("csv", "jsonl", "parquet"):
                export_study(study, store, folder / format, format=format)
        return {format: of_folder(folder / format) for format in ("csv", "jsonl", "parquet")}


@cache
def archive() -> Files:
    """A small archive of a study."""
    with TemporaryDirectory() as place:
        folder, target = Path(place) / "in", Path(place) / "a.zip"
        for name, content in {
            **{f"study/{name}": data for name, data in template("likert").items()},
            "data/judgments.csv": b"a,b\n1,2\n",
        }.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        write_archive(folder, target, {"dialometer": "1"})
        return {"a.zip": target.read_bytes()}


@cache
def evaluator() -> Files:
    """A Gaussian process trained on a few made-up dialogues, by behaviour and words alone."""
    rng = np.random.default_rng(1)
    dialogues = [
        Dialogue(
            f"d{n}",
            tuple(
                Turn(*("User", "user ok " * int(rng.integers(1, 5)), "user"))
                if k % 2
                else Turn("Agent", f"hi {n} {k}?", "agent")
                for k in range(6)
            ),
        )
        for n in range(8)
    ]
    table = describe(dialogues, has_meaning=False)
    describer = fit_describer(table, ("words", "behaviour"))
    known, settings = describer(table), KernelSettings()
    kernel = likeness(known, known).kernel(settings) + settings.noise * np.eye(len(dialogues))
    factor = np.linalg.cholesky(kernel)
    weights = np.asarray(np.linalg.solve(kernel, rng.normal(size=len(dialogues))), dtype=np.float64)
    posterior = Posterior(weights, 3.0, (factor, True), 1.0)
    with TemporaryDirectory() as place:
        made = GaussianEvaluator(describer, known, settings, posterior, centre=3.0, temperature=1.0)
        made.save(place, {"fingerprint": "x"})
        return of_folder(Path(place)) | VERDICTS


@cache
def topics() -> Files:
    """Topic models as numpy arrays: our own, and those that other programs can give."""
    own, given = io.BytesIO(), io.BytesIO()
    np.savez(own, weights=np.ones((2, 3), np.float32), words=np.arange(3), prior=np.asarray(0.5))
    np.savez(given, components=np.ones((2, 3)), words=np.array(["a", "b", "c"]), prior=np.asarray(0.5))
    return {"topics.npz": own.getvalue(), "given.npz": given.getvalue()}


@cache
def saved_retriever() -> Files:
    """A saved word-matching retriever with its knowledge base."""
    with TemporaryDirectory() as place:
        path = Path(place) / "kb.jsonl"
        path.write_bytes(KNOWLEDGE["kb.jsonl"])
        save_retriever(make_retriever("tfidf", None).fit(read_knowledge_base(path)), Path(place) / "saved")
        return of_folder(Path(place) / "saved")


def workbook(rows: list[list[Any]]) -> bytes:
    """A small spreadsheet file (.xlsx) with one sheet, texts shared and inline, numbers as numbers."""
    shared: dict[str, int] = {}

    def cell(row: int, column: int, content: Any) -> str:
        place = f"{chr(65 + column)}{row + 1}"
        if isinstance(content, str):
            return f'<c r="{place}" t="s"><v>{shared.setdefault(content, len(shared))}</v></c>'
        return "" if content is None else f'<c r="{place}"><v>{content}</v></c>'

    space = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    body = "".join(
        f'<row r="{i + 1}">{"".join(cell(i, j, c) for j, c in enumerate(row))}</row>' for i, row in enumerate(rows)
    )
    parts = {
        "[Content_Types].xml": "<Types/>",
        "xl/workbook.xml": f'<workbook {space}><sheets><sheet name="Ratings" sheetId="1"/></sheets></workbook>',
        "xl/worksheets/sheet1.xml": f"<worksheet {space}><sheetData>{body}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f"<sst {space}>"
        + "".join(f"<si><t>{escape(text)}</t></si>" for text in shared)
        + "</sst>",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
    return out.getvalue()


IMPORTS["long_xlsx"] = {
    "j.xlsx": workbook(
        [["Rater", "Item", "Criterion", "Value"], ["a", "i1", "q", 4], ["b", "i1", "q", 2], ["b", "i2", "q", None]]
    )
}
DIALOGUES["csv_xlsx"] = {
    "d.xlsx": workbook([["dialogue_id", "speaker", "text"], ["d1", "User", "Hello"], ["d1", "Agent", "Hi & bye"]])
}
