"""What a recruiting platform tells dialometer: how raters arrive, how they go back, and what its API can do."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self
from urllib.parse import quote

from dialometer.errors import DialometerError, Problem
from dialometer.model.recruitment import Recruitment
from dialometer.model.study import Study
from dialometer.recruit.rater_list import read_rater_list
from dialometer.recruit.signed_links import EXPIRES, SIGNATURE, signature_problem

if TYPE_CHECKING:
    from dialometer.recruit.api_client import ApiClient

PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_.\-]+)\}")
Transition = Literal["PUBLISH", "PAUSE", "START", "STOP"]


class PlatformError(DialometerError):
    """The platform did not do what was asked; its own words are quoted."""


class UnknownOutcome(PlatformError):
    """Nobody knows whether the platform did what was asked."""


@dataclass(frozen=True, slots=True)
class PlatformSubmission:
    """One rater's place in the study, as the platform sees it; ``code`` is the completion code that was entered."""

    id: str
    participant: str
    status: str
    code: str = ""

    @property
    def awaits_review(self) -> bool:
        """Whether the platform waits for us to approve it."""
        return self.status.upper().replace(" ", "_") == "AWAITING_REVIEW"


@dataclass(frozen=True, slots=True)
class BonusPayment:
    """Bonuses that are set up and not yet paid; the total is in hundredths of the currency, fees included."""

    id: str
    total_cents: float


class PlatformApi(ABC):
    """The calls that ``dialometer recruit PLATFORM …`` makes."""

    address: ClassVar[str]
    address_variable: ClassVar[str] = ""
    """Environment variable with another address of the API, for rehearsals."""
    token_variable: ClassVar[str]
    n_per_bonus: ClassVar[int] = 200
    """The most raters of one bonus payment."""

    def __init__(self, client: ApiClient) -> None:
        self.client = client

    @classmethod
    def from_environment(cls) -> Self:
        """The API with the researcher's token.

        The token is never an option or part of a study, so that no shell history or file holds it.
        """
        from dialometer.recruit.api_client import ApiClient  # noqa: PLC0415 - loads httpx, which only the API needs

        token = os.environ.get(cls.token_variable, "").strip()
        if not token:
            raise DialometerError(
                f"the environment has no {cls.token_variable}",
                remedy=f"make a token in the platform's settings and set {cls.token_variable} to it",
            )
        return cls(ApiClient(os.environ.get(cls.address_variable, "").strip() or cls.address, token))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    @abstractmethod
    def create_draft(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Create a study that nobody sees until it is published; the answer holds its ``id``."""

    @abstractmethod
    def transition(self, study_id: str, action: Transition) -> dict[str, Any]:
        """Publish, pause, start again or stop a study; the answer holds its ``status``."""

    @abstractmethod
    def submissions(self, study_id: str) -> Iterator[PlatformSubmission]:
        """All submissions of a study."""

    @abstractmethod
    def approve(self, submission_ids: Sequence[str]) -> None:
        """Approve submissions, which pays them; one that is approved already stays so."""

    @abstractmethod
    def request_return(self, submission_id: str, reasons: Sequence[str]) -> None:
        """Ask a rater to give the place back, with reasons that they read."""

    @abstractmethod
    def set_up_bonuses(self, study_id: str, amounts: Mapping[str, str]) -> BonusPayment:
        """Prepare bonuses, by submission or participant; nothing is paid yet. Amounts are decimals of the currency."""

    @abstractmethod
    def pay_bonuses(self, payment_id: str) -> None:
        """Pay bonuses that were set up. Never repeated: a platform may pay again when it is asked again."""


class Platform:
    """A recruiting platform with the settings of one study; a subclass per platform declares the class variables."""

    label: ClassVar[str]
    """Its name in reports and messages."""
    arrival: ClassVar[Mapping[str, str]] = {}
    """The parameters of the arriving link that name ``rater``, ``study`` and ``session``."""
    completion: ClassVar[str] = ""
    """Where finished raters go back to; empty where each project has its own address, given as ``return_url``.
    ``{code}`` and the parameters of the arriving link are filled in."""
    link: ClassVar[str] = ""
    """What to enter on the platform after the study's address, where it fills in the parameters itself."""
    qualifications: ClassVar[Mapping[str, str]] = {}
    """What the platform can select raters by: the setting under ``qualifications``, and the platform's name for the filter."""
    is_open: ClassVar[bool] = False
    """Whether somebody whom the link does not name may take part."""
    api: ClassVar[type[PlatformApi] | None] = None

    def __init__(self, recruitment: Recruitment) -> None:
        self.recruitment = recruitment
        self.parameters = {**self.arrival, **recruitment.parameters}
        self.return_url = recruitment.return_url or self.completion

    @property
    def kept_parameters(self) -> set[str]:
        """Parameters of a link that are stored: those with a role, and those that the way back fills in."""
        addresses = self.return_url + self.recruitment.screen_out_url
        return {*self.parameters.values(), *PLACEHOLDER.findall(addresses)} - {"code", self.parameters.get("rater", "")}

    def rater_in(self, query: Mapping[str, str]) -> str:
        """The rater that an arriving link names; empty where it names nobody."""
        return query.get(self.parameters.get("rater", ""), "").strip()

    @property
    def link_parameters(self) -> set[str]:
        """Parameters of a link that are read: the rater's name, and those that are stored."""
        return (self.kept_parameters | {self.parameters.get("rater", ""), SIGNATURE, EXPIRES}) - {""}

    def signature_problem(
        self, query: Mapping[str, str], *, key: bytes, host: str, now_s: float, folder: Path | None = None
    ) -> str:
        """What is wrong with the signature of a link; empty where it proves who opens it.

        ``key`` is the study's own; ``host`` is where the link leads, for platforms that sign for it; the ``folder`` may hold
        what is known of the study on the platform.
        """
        return signature_problem(key, self.recruitment.platform, self.rater_in(query), query, now_s)

    def is_proof(self, rater: str, folder: Path | None) -> bool:
        """Whether a link with this name can only come from the rater: the name is a secret of theirs, not an identifier."""
        return False

    def accepts(self, rater: str, folder: Path | None) -> bool:
        """Whether this rater may take part in the study of a folder."""
        return self._is_listed_right(rater, folder)

    def _is_listed_right(self, rater: str, folder: Path | None) -> bool:
        """Whether the study's lists let this rater in."""
        lists = self.recruitment.qualifications
        if folder is None:
            return True
        if lists.block_list and rater in read_rater_list(folder, lists.block_list):
            return False
        return not lists.allow_list or rater in read_rater_list(folder, lists.allow_list)

    def is_identifier(self, text: str) -> bool:
        """Whether a text could be what this platform calls a rater."""
        return bool(text) and text.isprintable()

    def way_back(self, state: str, rater: str, params: Mapping[str, Any]) -> tuple[str, str]:
        """The address to which a rater is sent at the end of a session, and the code to show; empty where there is none."""
        codes = {"completed": self.recruitment.completion_code, "screened_out": self.recruitment.screen_out_code}
        if state not in codes:
            return "", ""
        code = codes[state]
        address = self.return_url
        if state == "screened_out" and self.recruitment.screen_out_url:
            address = self.recruitment.screen_out_url
        elif not self.recruitment.return_url and not code and "{code}" in address:
            address = ""
        values = {name: str(value) for name, value in params.items()}
        if rater:
            values[self.parameters.get("rater", "rater")] = rater
        values["code"] = code
        return PLACEHOLDER.sub(lambda match: quote(values.get(match[1], ""), safe=""), address), code

    def problems(self, study: Study) -> Iterable[Problem]:
        """What ``dialometer check`` says about the study's ``recruitment``; ``field`` names the setting."""
        return ()

    def draft_of(
        self, study: Study, address: str, *, minutes: float, n_places: int | None = None, devices: Sequence[str] = ()
    ) -> dict[str, Any]:
        """What :meth:`PlatformApi.create_draft` sends; raises :class:`StudyError` with everything that is missing."""
        raise DialometerError(f"studies cannot be created on {self.label} from here", remedy="create it there")

    def with_filter_numbers(self, payload: Mapping[str, Any], api: PlatformApi) -> dict[str, Any]:
        """A draft whose filters name their answers as the platform's API wants them, looked up there."""
        return dict(payload)
