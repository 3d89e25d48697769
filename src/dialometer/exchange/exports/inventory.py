"""What a study's database holds about people, why, and for how long: the answer to "what do you store about me?"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, inspect, select

from dialometer.model.session import ANONYMOUS
from dialometer.model.study import Study
from dialometer.storage.rows import mapping_from_json
from dialometer.storage.schema import metadata, people, sessions
from dialometer.storage.store import Store
from dialometer.storage.withdrawals import Due

NOT_STORED = (
    "IP addresses: used in memory to limit how often somebody may arrive, never written down or logged",
    "names of browsers and devices: only a kind, such as phone or desktop",
    "the tokens in raters' cookies: only their hashes",
)


@dataclass(frozen=True, slots=True)
class StoredTable:
    """One kind of thing that is stored: the table, what a row is, why it is needed, what bounds its time."""

    table: str
    what: str
    why: str
    until: str


IDENTIFIERS, ANSWERS, STUDY = "identifiers", "answers", "study"
"""What bounds the time of a thing: ``privacy.identifiers_days``, ``privacy.answers_days``, or the study itself."""

EXPLAINED: tuple[StoredTable, ...] = (
    StoredTable(
        "people",
        "the name a platform has for a rater and the parameters of the link, under a random id",
        "to send raters back, to pay them, and to let nobody take part twice",
        IDENTIFIERS,
    ),
    StoredTable(
        "sessions",
        "when a rater came and left, the condition drawn, the language, how far they got, the version of the consent text",
        "to give slots, to show the right screen, and to prove consent",
        ANSWERS,
    ),
    StoredTable(
        "slots", "which items a rater was given and when they were done", "to give each item its raters", ANSWERS
    ),
    StoredTable("slot_counts", "how many slots of each item are taken", "to give each item its raters", STUDY),
    StoredTable(
        "slot_changes", "slots taken or released since they were added up", "to give each item its raters", STUDY
    ),
    StoredTable("judgments", "what a rater judged, with the time and the order shown", "the study's data", ANSWERS),
    StoredTable("answers", "answers to questionnaires and checks, free texts included", "the study's data", ANSWERS),
    StoredTable(
        "visits",
        "when a screen was shown and sent, how often its window lost focus, the kind of device",
        "to recognise careless answers",
        ANSWERS,
    ),
    StoredTable(
        "submissions", "tokens of screens that were sent", "to store a screen once however often it is sent", ANSWERS
    ),
    StoredTable("findings", "what quality rules found in a session", "to say why a session is excluded", ANSWERS),
    StoredTable(
        "exclusions", "who left a session out of the analysis, and why", "no decision goes unrecorded", ANSWERS
    ),
    StoredTable("drafts", "forms that are not sent yet", "nothing is lost when a page is closed", ANSWERS),
    StoredTable("chat_turns", "what was said in live conversations", "the study's data", ANSWERS),
    StoredTable("withdrawals", "that a session was erased, when, and how much it held", "counts stay honest", STUDY),
    StoredTable("withdrawal_codes", "hashes of the codes with which raters withdraw", "to let raters withdraw", STUDY),
    StoredTable(
        "secrets", "the secret that signs the links of raters", "to let in only raters with such a link", STUDY
    ),
    StoredTable("controls", "who started, paused or closed the study, and why", "no decision goes unrecorded", STUDY),
    StoredTable("imports", "names and hashes of imported files", "no file is counted twice", STUDY),
    StoredTable("study_versions", "the study file as raters saw it", "every answer can be read in its context", STUDY),
    StoredTable("accounts", "names and password hashes of experimenters", "to let only them see the dashboard", STUDY),
    StoredTable("study_roles", "what experimenters may do in single studies", "to let only them see a study", STUDY),
    StoredTable(
        "recovery_codes", "codes that replace an experimenter's phone, as hashes", "to let them sign in", STUDY
    ),
    StoredTable("sign_ins", "open sign-ins of experimenters, as hashes", "to let only them see the dashboard", STUDY),
    StoredTable(
        "account_links", "links with which an account is made, as hashes", "to let new experimenters in", STUDY
    ),
    StoredTable("sign_in_failures", "names with which signing in failed lately", "to slow down guessing", STUDY),
    StoredTable("dashboard_log", "what experimenters did on the dashboard", "no decision goes unrecorded", STUDY),
    StoredTable("comments", "what experimenters say about a study", "to work on a study together", STUDY),
    StoredTable(
        "shared_reports",
        "copies of reports behind a link, without raw data, and links for reviewers",
        "to show results to others",
        STUDY,
    ),
    StoredTable(
        "identities", "who experimenters are at their provider of sign-ins", "to let them sign in there", STUDY
    ),
    StoredTable(
        "provider_requests",
        "sign-ins under way at a provider, for minutes",
        "to let experimenters sign in there",
        STUDY,
    ),
    StoredTable(
        "wizards", "names of people who answer in place of a system", "to give each conversation one of them", STUDY
    ),
    StoredTable(
        "wizard_chats", "conversations that wait for a wizard", "to give each conversation one of them", ANSWERS
    ),
    StoredTable(
        "request_counts", "arrivals and logins of a client in a minute, as hashes", "to slow down guessing", STUDY
    ),
    StoredTable(
        "looks", "when experimenters looked at results, and what they saw", "peeking is part of a study", STUDY
    ),
)


def inventory(study: Study, store: Store, at_ms: int) -> dict[str, Any]:
    """What is stored and why, for programs."""
    explained = {kept.table: kept for kept in EXPLAINED}
    promised = {
        IDENTIFIERS: study.spec.privacy.identifiers_days,
        ANSWERS: study.spec.privacy.answers_days,
        STUDY: None,
    }
    stored = []
    with store.database.reading() as connection:
        present = set(inspect(connection).get_table_names())
        for table in metadata.sorted_tables:
            if table.name not in present:
                continue
            kept = explained.get(table.name, StoredTable(table.name, "", "", STUDY))
            n_rows = connection.scalar(select(func.count()).select_from(table)) or 0
            stored.append(
                {
                    "table": table.name,
                    "what": kept.what,
                    "why": kept.why,
                    "n_rows": n_rows,
                    "bounded_by": kept.until,
                    "kept_days": promised[kept.until],
                }
            )
        rows = connection.execute(select(people.c.platform, people.c.external_id, people.c.params)).all()
    due = due_now(study, store, at_ms)
    return {
        "study": study.spec.name,
        "stored": sorted(stored, key=lambda entry: _place(str(entry["table"]))),
        "identifiers": _identifiers([(row[0], row[1], row[2]) for row in rows]),
        "consent_versions": _consents(store),
        "free_text_questions": free_texts(study),
        "not_stored": list(NOT_STORED),
        "due": {"identifiers": len(due.raters), "sessions": len(due.sessions)},
        "n_withdrawn": len(store.withdrawals.all()),
    }


def due_now(study: Study, store: Store, at_ms: int) -> Due:
    """What has been kept for longer than the study promises."""
    promise = study.spec.privacy
    return store.withdrawals.due(
        identifiers_days=promise.identifiers_days, answers_days=promise.answers_days, at_ms=at_ms
    )


def _place(table: str) -> int:
    names = [kept.table for kept in EXPLAINED]
    return names.index(table) if table in names else len(names)


def _identifiers(rows: list[tuple[str, str | None, str]]) -> list[dict[str, Any]]:
    """By platform: how many raters have a name there, how many were forgotten, which parameters came with them."""
    by_platform: dict[str, dict[str, Any]] = {}
    for platform, external_id, params in rows:
        counts = by_platform.setdefault(
            platform, {"platform": platform, "n_named": 0, "n_forgotten": 0, "parameters": set()}
        )
        # A rater of an open link has a name that was made up for this session alone.
        is_made_up = (external_id or "").startswith(ANONYMOUS)
        counts["n_named"] += external_id is not None and not is_made_up
        counts["n_forgotten"] += external_id is None
        counts["parameters"] |= set(mapping_from_json(params))
    return [{**counts, "parameters": sorted(counts["parameters"])} for _, counts in sorted(by_platform.items())]


def _consents(store: Store) -> dict[str, int]:
    query = select(sessions.c.consent_version, func.count()).group_by(sessions.c.consent_version)
    with store.database.reading() as connection:
        return {version or "none given": n for version, n in sorted(connection.execute(query.order_by(None)).all())}


def free_texts(study: Study) -> list[str]:
    """Where raters can write what they like, and so also about themselves."""
    spec = study.spec
    questions = (*spec.screening, *spec.pre_questionnaire, *spec.post_questionnaire)
    scales = [(question.name, question.scale) for question in questions]
    scales += [(criterion.name, criterion.scale) for criterion in spec.criteria]
    written = [name for name, scale in scales if spec.scales[scale].takes_own_words]
    return written + [criterion.reason_name for criterion in spec.criteria if criterion.reason]
