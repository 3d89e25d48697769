"""What an extra of the package is needed for is said in a sentence, in notebooks as on the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from dialometer.errors import DialometerError

Given = ParamSpec("Given")
Result = TypeVar("Result")


def needs_extra(extra: str) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Marks a function that may need what an extra installs."""

    def marked(function: Callable[Given, Result]) -> Callable[Given, Result]:
        @wraps(function)
        def called(*args: Given.args, **kwargs: Given.kwargs) -> Result:
            try:
                return function(*args, **kwargs)
            except ModuleNotFoundError as error:
                if (error.name or "").startswith("dialometer"):
                    raise
                message = f"this needs {error.name}, which is not installed"
                raise DialometerError(message, remedy=f"pip install 'dialometer[{extra}]'") from error

        return called

    return marked
