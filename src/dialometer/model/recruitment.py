"""What a study file declares about raters as people: where they come from, what they are paid, what is kept of them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from dialometer.model.part import Part
from dialometer.model.qualifications import Qualifications

Preset = Literal["connect", "sona", "mturk"]


def money(cents: float, currency: str) -> str:
    """An amount in words, such as "1,250.00 USD"."""
    return f"{cents / 100:,.2f} {currency}"


class Recruitment(Part):
    """Where raters come from, what they are paid and how many are wanted."""

    platform: str = Field(default="link", description="Where raters come from: a registered recruiting platform.")
    quota: int | None = Field(default=None, ge=1, description="Raters wanted in all.")
    pay_cents: int = Field(default=0, ge=0, description="Pay for a finished session, in hundredths of the currency.")
    currency: str = Field(default="USD", min_length=3, max_length=3, description="Three letters, such as USD or EUR.")
    fee_percent: float = Field(default=0, ge=0, description="What the platform takes on top of the pay.")
    minutes: float | None = Field(
        default=None, gt=0, description="Length announced to raters; estimated from the items by default."
    )
    description: str = Field(
        default="", description="What raters read about the study on the platform; the title by default."
    )
    completion_code: str = Field(default="", description="Code that tells the platform that a rater has finished.")
    screen_out_code: str = Field(default="", description="Code that tells the platform that a rater was screened out.")
    screen_out_pay_cents: int = Field(
        default=0, ge=0, description="Pay for raters who are screened out, in hundredths of the currency."
    )
    preset: Preset | None = Field(
        default=None, description="With platform redirect: the parameters and way back of a known site."
    )
    return_url: str = Field(
        default="", description="Where finished raters are sent; {code} and arrival parameters are filled in."
    )
    screen_out_url: str = Field(
        default="", description="Where raters who are screened out are sent; return_url by default."
    )
    qualifications: Qualifications = Field(default_factory=Qualifications, description="Who may rate.")
    parameters: dict[str, str] = Field(
        default_factory=dict, description="Names of arrival parameters: rater, session, study."
    )

    signed: bool = Field(
        default=False,
        description="Let in only raters whose link is signed: by 'dialometer recruit links', or by Prolific.",
    )
    arrivals_per_minute: int | None = Field(
        default=None, ge=1, description="The most raters who can start within a minute; the server's limit by default."
    )

    def cost_cents(self, n_raters: int = 1) -> float:
        """What finished raters cost: their pay and what the platform takes on top."""
        return n_raters * self.pay_cents * (100 + self.fee_percent) / 100

    @property
    def pay(self) -> str:
        """What a finished rater is paid, in words."""
        return money(self.pay_cents, self.currency)

    @model_validator(mode="after")
    def _preset_fits(self) -> Recruitment:
        if self.preset is not None and self.platform != "redirect":
            raise ValueError(f"preset: {self.preset} needs platform: redirect, not {self.platform}")
        return self


class Privacy(Part):
    """How long what raters leave behind is kept, counted from the last time a session was seen."""

    identifiers_days: int | None = Field(
        default=None,
        ge=0,
        description="Days until names that a platform has for raters are erased; no limit by default.",
    )
    answers_days: int | None = Field(
        default=None, ge=0, description="Days until everything that a rater gave is erased; no limit by default."
    )
