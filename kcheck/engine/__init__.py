"""The engine: draws cases, has them judged, shrinks what fails, and tells it all as a stream of events."""

from kcheck.engine.campaign import Campaign
from kcheck.engine.learn import check_pins
from kcheck.engine.own_constants import leave_out
from kcheck.engine.settings import Settings

__all__ = ["Campaign", "Settings", "check_pins"]

leave_out()
