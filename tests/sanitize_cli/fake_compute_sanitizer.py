"""Stands in for compute-sanitizer and, unless told to run it, for the worker too. What it does is in $FAKE, as JSON.

version     answer of --version
fixture     report to give when a faulty case ran: NAME.xml and NAME.log beside the tests of kcheck.sanitizer
faulty      values of the case's argument n that are faulty
survives    a fault does not end the process
together    only a process with several cases shows the fault
dies        values of n in which the process dies without a word
hangs       values of n in which it stands still
rejects     values of n that the target declines
address     address of every backing
drop        what is missing: "xml", "summary", "end", "launch"
work        run the real worker
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).parent.parent / "sanitizer" / "fixtures"


def main() -> int:
    fake: dict[str, Any] = json.loads(os.environ.get("FAKE", "{}"))
    if "--version" in sys.argv:
        print("Version 2025.3.1.0")
        return 0
    with Path(os.environ["FAKE_CALLS"]).open("a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\n")
    xml, log = (Path(sys.argv[sys.argv.index(option) + 1].replace("%%", "%")) for option in ("--save", "--log-file"))
    if fake.get("work"):
        worker = sys.argv[sys.argv.index(sys.executable) :]
        code = subprocess.run(worker, check=False).returncode
        assert code == 0
        faulty = bool(fake.get("fixture"))
    else:
        faulty = work(Path(sys.argv[-2]), Path(sys.argv[-1]), fake)
    name = fake["fixture"] if faulty else "clean"
    drop = fake.get("drop")
    if drop != "xml":
        shutil.copy(FIXTURES / f"{name}.xml", xml)
    lines = (FIXTURES / f"{name}.log").read_text().splitlines(keepends=True)
    log.write_text("".join(line for line in lines if drop != "summary" or "SUMMARY" not in line))
    return 86 if faulty else 0


def work(job: Path, progress: Path, fake: dict[str, Any]) -> bool:
    """Pretend to run the cases.

    Returns:
        Some case was faulty.
    """
    cases = json.loads(job.read_text())["cases"]
    any_faulty = False
    with progress.open("a", buffering=1) as file:

        def say(event: str, **data: Any) -> None:
            file.write(json.dumps({"event": event} | data) + "\n")

        say("loaded")
        for number, case in enumerate(cases):
            n = case["args"]["n"]
            say("started", case=number)
            say("placed", case=number, addresses={name: fake.get("address", 4096) for name in case["backings"]})
            if n in fake.get("hangs", ()):
                time.sleep(600)
            if n in fake.get("dies", ()):
                return any_faulty
            if n in fake.get("rejects", ()):
                say("finished", case=number, status="rejected", reason="ValueError: n", launches={})
                continue
            faulty = n in fake.get("faulty", ()) and not (fake.get("together") and len(cases) == 1)
            any_faulty = any_faulty or faulty
            lost = faulty and not fake.get("survives")
            launches = {} if fake.get("drop") == "launch" else {"kernel": 1}
            say("finished", case=number, status="lost" if lost else "done", reason="", launches=launches)
            if lost:
                break
        if fake.get("drop") != "end":
            say("ended")
    return any_faulty


if __name__ == "__main__":
    sys.exit(main())
