"""The engine: draws cases, has them judged, shrinks what fails, and tells it all as a stream of events."""

from kcheck.engine.campaign import Campaign
from kcheck.engine.settings import Settings

__all__ = ["Campaign", "Settings"]
