"""Every write of an account."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from control_plane.accounts.models import User
from control_plane.audit.actions import record
from control_plane.refusals import Conflict, Invalid


@transaction.atomic
def create_account(*, actor: str, email: str, password: str, name: str = "", is_operator: bool = False) -> User:
    email = email.strip().lower()
    _check("email", validate_email, email)
    _check("password", validate_password, password)
    if User.objects.filter(email=email).exists():
        raise Conflict(f"There is an account {email} already")
    user = User.objects.create_user(email, password, name=name, is_operator=is_operator)
    verb = "operator.created" if is_operator else "account.created"
    record(actor=actor, verb=verb, target=email, tenant=None, after={"name": name})
    return user


def _check(field: str, validate: object, value: str) -> None:
    assert callable(validate)
    try:
        validate(value)
    except ValidationError as error:
        raise Invalid(field, " ".join(error.messages)) from None
