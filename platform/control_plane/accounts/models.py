"""People. Signing in is by e-mail; an operator stands above all tenants."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager
from django.db import models


class UserManager(BaseUserManager["User"]):
    def create_user(
        self, email: str, password: str | None = None, *, name: str = "", is_operator: bool = False
    ) -> User:
        user = self.model(email=email.strip().lower(), name=name, is_operator=is_operator)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=(username or "").strip().lower())


class User(AbstractBaseUser):
    email = models.EmailField(unique=True)  # always lower case: one mailbox is one account
    name = models.CharField(max_length=200, blank=True, default="")
    is_operator = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects: ClassVar[UserManager] = UserManager()

    def __str__(self) -> str:
        return self.email

    @property
    def principal(self) -> str:
        """The name that the engine sees when this person acts through the gateway."""
        return f"user-{self.pk}"
