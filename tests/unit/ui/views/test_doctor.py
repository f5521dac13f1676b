from __future__ import annotations

from decimal import Decimal

from gpucourse.labs.results import ModulePrice, PreflightReport, ShortQuota
from gpucourse.model.cloud import Finding, Quota, QuotaRequest
from gpucourse.ui.views import doctor
from tests.unit.ui.examples import text

GOOD = Finding(what="Python", state="ok", detail="3.11")
BAD = Finding(what="torch", state="missing", detail="not installed", mend="pip install torch")
DARK = Finding(what="leftovers", state="unknown", detail="not allowed to look", mend="gpucourse doctor --policy")
QUOTA = Quota(
    code="L-DB2E81BA", name="G and VT", market="on-demand", region="us-east-2", needed=16, limit=4, used=4, modules=("1", "3")
)


def make_examined(*findings: Finding) -> PreflightReport:
    prices = [
        ModulePrice(module="1", title="Basic GPU", machines="1 x a", usd_per_hour=Decimal("0.55"), hours=Decimal("2.0")),
        ModulePrice(module="3", title="Parallel", machines="2 x b", usd_per_hour=Decimal("1.5"), hours=Decimal("7.75")),
    ]
    return PreflightReport(
        region="us-east-2", market="on-demand", findings=list(findings), prices=prices, sources=["a table, 2026-07-20"]
    )


def test_machine_that_lacks_something() -> None:
    assert text(doctor.machine([GOOD, BAD], "gpucourse next")) == (
        "What the course needs on this machine\n"
        "\n"
        "   part    found\n"
        "✓  Python  3.11\n"
        "✗  torch   not installed\n"
        "\n"
        "How to fix it\n"
        "  torch  pip install torch\n"
        "\n"
        "1 of 2 is missing.\n"
    )
    assert "Ready.\nNext: gpucourse deploy 5" in text(doctor.machine([GOOD], "gpucourse deploy 5"))


def test_account_with_the_price_of_each_module() -> None:
    output = text(doctor.account(make_examined(GOOD), "gpucourse deploy 0"))
    assert "What the course needs from AWS in us-east-2 (on-demand)" in output
    assert "1       Basic GPU  1 x a     $0.55      2   $1.10" in output
    assert "$12.72" in output
    assert "Prices: a table, 2026-07-20." in output
    assert "Ready.\nA lab on AWS: gpucourse deploy 1 --target aws\nNext: gpucourse deploy 0" in output


def test_account_is_not_ready_when_something_could_not_be_checked() -> None:
    page = text(doctor.account(make_examined(GOOD, DARK)))
    assert "?  leftovers" in page
    assert "Ready." not in page
    assert "1 of 2 could not be checked, and may be missing too." in page
    output = text(doctor.account(make_examined(BAD, DARK)))
    assert "1 of 2 is missing. 1 of 2 could not be checked" in output


def test_machine_shows_commands_as_lines_to_copy() -> None:
    mend = "by someone who may, once: aws iam create-role '{\"a\":1}' && aws iam put-role-policy"
    output = text(doctor.machine([Finding(what="backstop", state="warning", detail="no role", mend=mend)], "gpucourse next"))
    lines = [
        "How to fix it: backstop",
        "# by someone who may, once",
        "aws iam create-role '{\"a\":1}'",
        "aws iam put-role-policy",
    ]
    assert "\n".join(lines) in output


def test_quotas_say_what_to_request() -> None:
    waiting = QuotaRequest(code=QUOTA.code, region=QUOTA.region, wanted=20, status="CASE_OPENED", opened_before=True)
    assert "ask for 20" in text(doctor.quotas([ShortQuota(quota=QUOTA)], "us-east-2"))
    assert "a request for 20 is open (CASE_OPENED)" in text(doctor.quotas([ShortQuota(quota=QUOTA, open=waiting)], "us-east-2"))
    assert "nothing to request" in text(doctor.quotas([], "us-east-2"))
    output = text(doctor.quota_requests([waiting]))
    assert "20 vCPU" in output
    assert "within hours or days" in output
