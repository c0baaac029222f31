"""``kcheck init``: what it writes runs, finds the bugs there are, and says what it could not know."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from kcheck import loader
from kcheck.cli.init import command
from kcheck.client import Client
from kcheck.engine import Campaign, Settings
from kcheck.errors import TargetLoadError, UsageError
from kcheck.events import CaseVerdict, RunDone, TargetResult
from kcheck.findings import Kind
from kcheck.store import Store

PACKAGE = "init_test_ops"
OPS = '''
from __future__ import annotations

from typing import Optional

import torch
import triton

from init_test_ops import kernels
from init_test_ops.kernels import scale_kernel


def scale(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
    rows, columns = x.shape
    out = torch.empty(rows, columns, dtype=x.dtype, device=x.device)
    scale_kernel[(rows,)](out, x, columns, columns, x.stride(1), factor, BLOCK=triton.next_power_of_2(columns))
    return out


def gather(out, x, index):
    if out.shape != (index.shape[0], x.shape[1]):
        raise ValueError("out has another shape")
    _launch_gather(out, x, index)


def gather_ref(x, index):
    return x[index.long()]


def _launch_gather(out, x, index):
    kernels.gather_kernel[(index.shape[0],)](
        out, x, index, x.shape[1], *out.stride(), *x.stride(), index.stride(0),
        LANES=triton.next_power_of_2(x.shape[1]),
    )


def add(
    out: "torch.Tensor", input: "torch.Tensor", weight: "torch.Tensor", epsilon: "float", *,
    residual: Optional[torch.Tensor] = None, strict: bool = True,
) -> None:
    """vLLM's style: the output first, strings as annotations."""
    if strict and weight.shape != input.shape[-1:]:
        raise ValueError("weight has another size")
    kernels.add_kernel[(input.shape[0],)](
        out, input, weight, input.shape[1], *out.stride(), *input.stride(), weight.stride(0), epsilon, LANES=64
    )


def triple_(x):
    kernels.scale_kernel[(x.shape[0],)](x, x, x.shape[1], x.shape[1], 1, 3.0, BLOCK=64)


class Norm(torch.nn.Module):
    def __init__(self, hidden_size: int, eps: float = 1e-6):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(hidden_size))
        self.eps = eps

    def forward(self, x):
        out = torch.empty_like(x)
        add(out, x, self.weight.detach(), self.eps)
        return out

    @staticmethod
    def scaled(x: torch.Tensor) -> torch.Tensor:
        return scale(x, 3.0)

    def method(self, x):
        return x


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return scale(x)

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


def picky(q: torch.Tensor) -> torch.Tensor:
    if q.dtype != torch.float16 or q.dim() != 3:
        raise TypeError("give me three dimensions of half")
    return scale(q.flatten(1)).view(q.shape)


def impossible(x: torch.Tensor) -> torch.Tensor:
    raise ValueError("never")


def dense(x, weight):
    if not weight.is_contiguous():
        raise ValueError("weight must be contiguous")
    out = torch.empty(x.shape, dtype=x.dtype)
    add(out, x, weight, 0.0)
    return out


VALUE = 3
'''
NAMESAKE = """
from init_test_ops import kernels
from init_test_ops.kernels import add_kernel
from init_test_ops.ops import scale


def doubled(x):
    return scale(x)


def doubled_ref(x):
    return 2 * x
"""
KERNELS = """
import triton
import triton.language as tl


@triton.jit
def scale_kernel(out, x, columns, row_stride, column_stride, factor, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    value = tl.load(x + row * row_stride + column * column_stride, mask=column < columns)
    tl.store(out + row * columns + column, value * factor, mask=column < columns)


@triton.jit
def gather_kernel(out, x, index, columns, out_row, out_lane, x_row, x_lane, step, LANES: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, LANES)
    source = tl.load(index + row * step).to(tl.int64)
    values = tl.load(x + source * x_row + lanes * x_lane, mask=lanes < columns)
    tl.store(out + row * out_row + lanes * out_lane, values, mask=lanes < columns)


@triton.jit
def add_kernel(out, x, w, columns, out_row, out_lane, x_row, x_lane, w_lane, eps, LANES: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, LANES)
    values = tl.load(x + row * x_row + lanes * x_lane, mask=lanes < columns)
    weight = tl.load(w + lanes * w_lane, mask=lanes < columns)
    tl.store(out + row * out_row + lanes * out_lane, values + weight + eps, mask=lanes < columns)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of wrappers, their kernels in another module."""
    folder = tmp_path_factory.mktemp("library")
    package = folder / PACKAGE
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "ops.py").write_text(OPS)
    (package / "kernels.py").write_text(KERNELS)
    (package / "namesake").mkdir()
    (package / "namesake" / "__init__.py").write_text("from .doubled import doubled\n")
    (package / "namesake" / "doubled.py").write_text(NAMESAKE)
    return folder


@pytest.fixture(scope="module")
def workers(library: Path) -> Iterator[Client]:
    """Workers that find the package; started once."""
    before = list(sys.path)
    sys.path.append(str(library))
    with Client("interpret", library / "worker.log") as client:
        yield client
    sys.path[:] = before


@pytest.fixture
def client(workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """The workers, in an empty folder; ``kcheck init`` uses them too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kcheck.client.Client", lambda *_, **__: nullcontext(workers))
    return workers


def init(*arguments: str) -> str:
    done = CliRunner().invoke(command, [*arguments, "--backend", "interpret"], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


def fuzzed(path: str, client: Client, folder: Path) -> TargetResult:
    (loaded,) = loader.load(str(Path(path).absolute()))
    settings = Settings(max_examples=5, max_time=10.0, seed=1)
    done = list(Campaign([loaded], client, Store(folder / ".kcheck").open(), settings, "interpret").run())[-1]
    assert isinstance(done, RunDone)
    return done.results[0]


def ruff(path: Path) -> None:
    for options in (["check"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", options[0], "--isolated", *options[1:], str(path)]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_wrapper_with_a_bug_from_init_to_the_finding(client: Client, tmp_path: Path) -> None:
    told = init(f"{PACKAGE}.ops:scale")
    assert told.startswith("wrote kcheck_scale.py, with 2 TODOs; run it: kcheck fuzz kcheck_scale.py")
    text = Path("kcheck_scale.py").read_text()
    assert f"kernels=[{PACKAGE}.kernels.scale_kernel]" in text
    assert 'factor=draw(ks.options("factor", (2.0,)))' in text
    assert "TODO(kcheck): only memory and layouts are checked" in text
    ruff(tmp_path / "kcheck_scale.py")
    result = fuzzed("kcheck_scale.py", client, tmp_path)
    assert [(d.finding.kind, d.finding.argument) for d in result.discoveries] == [(Kind.OUT_OF_VIEW_READ, "x")]


def test_an_output_first_and_an_oracle_without_it(client: Client, tmp_path: Path) -> None:
    init(f"{PACKAGE}.ops:gather")
    text = Path("kcheck_gather.py").read_text()
    assert "def oracle(out, x, index):" in text
    assert f"return {PACKAGE}.ops.gather_ref(x, index)" in text
    assert 'out=draw(ks.outputs((count, columns), "float32"))' in text
    assert "index=draw(ks.indices((count,), bound=rows))" in text
    assert 'outputs=["out"]' in text
    assert f"{PACKAGE}.kernels.gather_kernel" in text  # found through a helper function
    assert text.count("TODO(kcheck):") == 1
    assert fuzzed("kcheck_gather.py", client, tmp_path).verdict is CaseVerdict.MATCH


def test_annotations_as_strings_options_and_an_optional_tensor(client: Client, tmp_path: Path) -> None:
    init(f"{PACKAGE}.ops:add", "-o", "kcheck_sum.py")
    text = Path("kcheck_sum.py").read_text()
    assert 'weight=draw(ks.tensors((columns,), "float32"))' in text
    assert 'epsilon=draw(ks.options("epsilon", (1e-06,)))' in text
    assert 'strict=draw(ks.options("strict", (True, False)))' in text
    assert 'if draw(ks.options("residual", ("none", "given"))) == "given":' in text
    assert "ops.add(out, input, weight, epsilon, residual=residual, strict=strict)" in re.sub(
        r"\s+\)", ")", re.sub(r"\(\s+", "(", text)
    )
    result = fuzzed("kcheck_sum.py", client, tmp_path)
    assert result.verdict is CaseVerdict.MATCH, result


def test_an_argument_that_is_written_becomes_inout(client: Client, tmp_path: Path) -> None:
    init(f"{PACKAGE}.ops:triple_")
    text = Path("kcheck_triple_.py").read_text()
    assert "draw(ks.inouts((rows, columns)" in text
    assert 'inout=["x"]' in text
    assert fuzzed("kcheck_triple_.py", client, tmp_path).verdict is not CaseVerdict.COULD_NOT_CHECK


@pytest.mark.parametrize(
    ("name", "file", "call"),
    [
        ("Norm", "kcheck_norm.py", "return made(x)"),
        ("Norm.scaled", "kcheck_scaled.py", "Norm.scaled(x)"),
        ("Scale", "kcheck_scale.py", "Scale.apply(x)"),
    ],
)
def test_classes(client: Client, tmp_path: Path, name: str, file: str, call: str) -> None:
    init(f"{PACKAGE}.ops:{name}")
    assert call in Path(file).read_text()
    assert fuzzed(file, client, tmp_path).verdict is not CaseVerdict.COULD_NOT_CHECK


def test_other_dimensions_and_types_are_tried(client: Client) -> None:
    init(f"{PACKAGE}.ops:picky")
    assert 'draw(ks.tensors((batch, rows, columns), "float16"))' in Path("kcheck_picky.py").read_text()


def test_what_accepts_nothing_says_why_and_still_runs(client: Client, tmp_path: Path) -> None:
    init(f"{PACKAGE}.ops:impossible")
    text = " ".join(Path("kcheck_impossible.py").read_text().replace("#", "").split())
    assert "TODO(kcheck): none of the sizes that were tried was accepted (ValueError: never (ops.py:" in text
    assert str(tmp_path) not in text
    assert fuzzed("kcheck_impossible.py", client, tmp_path).verdict is CaseVerdict.COULD_NOT_CHECK


def test_a_function_that_hides_the_module_of_its_name(client: Client, tmp_path: Path) -> None:
    init(f"{PACKAGE}.namesake.doubled:doubled")
    text = Path("kcheck_doubled.py").read_text()
    assert f"from {PACKAGE}.namesake.doubled import doubled as {PACKAGE}_doubled" in text
    assert f"from {PACKAGE}.namesake.doubled import doubled_ref" in text
    assert f"kernels=[{PACKAGE}.kernels.scale_kernel]" in text
    ruff(tmp_path / "kcheck_doubled.py")
    assert [d.finding.argument for d in fuzzed("kcheck_doubled.py", client, tmp_path).discoveries] == ["x"]


def test_a_module_that_is_named_as_its_function(client: Client, library: Path, tmp_path: Path) -> None:
    (tmp_path / "triple.py").write_text(OPS.replace("def triple_(", "def triple("))
    init("triple.py:triple")
    assert "import triple as triple_module" in Path("kcheck_triple.py").read_text()
    assert fuzzed("kcheck_triple.py", client, tmp_path).verdict is not CaseVerdict.COULD_NOT_CHECK


def test_an_argument_that_must_be_contiguous(client: Client, tmp_path: Path) -> None:
    init(f"{PACKAGE}.ops:dense")
    text = Path("kcheck_dense.py").read_text()
    assert 'x=draw(ks.tensors((rows, columns), "float32")),' in text
    assert 'weight=draw(ks.tensors((columns,), "float32", kinds=ks.DENSE)),' in text
    assert "TODO(kcheck): the wrapper declined weight where it was not contiguous" in text
    assert fuzzed("kcheck_dense.py", client, tmp_path).verdict is CaseVerdict.MATCH


def test_a_file_that_cannot_be_imported_is_told_as_such(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kcheck.scaffold.kernels", lambda wrapper: [(wrapper.module.__name__, "missing_kernel")])
    with pytest.raises(TargetLoadError) as raised:
        init(f"{PACKAGE}.ops:scale")
    told = str(raised.value)
    assert told.startswith("wrote kcheck_scale.py, but it cannot be imported: kcheck_scale.py:")
    assert "has no attribute 'missing_kernel'" in told
    assert "trial" not in told
    text = Path("kcheck_scale.py").read_text()
    assert "TODO(kcheck): no sizes were tried, since this file did not import" in text


def test_a_wrapper_in_a_file_of_its_own_folder(client: Client, library: Path, tmp_path: Path) -> None:
    source = tmp_path / "src" / "my_scale.py"
    source.parent.mkdir()
    source.write_text(OPS)
    init("src/my_scale.py:scale", "-o", "checks/kcheck_scale.py")
    text = Path("checks/kcheck_scale.py").read_text()
    assert 'sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../src"))' in text
    ruff(tmp_path / "checks" / "kcheck_scale.py")
    # In a process that knows nothing of that folder.
    run = [sys.executable, "-P", "-m", "kcheck", "fuzz", "checks/kcheck_scale.py", "--max-examples", "0"]
    done = subprocess.run(
        run, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(library)}
    )
    assert done.returncode == 1, done.stderr


def test_a_file_is_overwritten_only_with_force(client: Client) -> None:
    path = Path("kcheck_scale.py")
    path.write_text("mine")
    with pytest.raises(UsageError, match=r"kcheck_scale\.py exists; choose another place with -o, or overwrite it"):
        init(f"{PACKAGE}.ops:scale")
    assert path.read_text() == "mine"
    init(f"{PACKAGE}.ops:scale", "--force")
    assert path.read_text() != "mine"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("{}.ops:nothing", "has no 'nothing'; its functions are scale, gather, gather_ref"),
        ("{}.ops:VALUE", "VALUE is a int, which cannot be called"),
        ("{}.ops:Norm.method", "Norm.method needs an instance of Norm"),
        ("{}.kernels:add_kernel", "add_kernel is a kernel; name the Python function that launches it"),
        ("{}.missing:f", "no module named"),
        ("missing.py:f", "missing.py: no such file"),
        ("{}.ops", "names no function; the form is"),
        ("a b:c", "does not name a module"),
    ],
)
def test_errors_are_one_sentence(client: Client, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(says)) as raised:
        init(name.format(PACKAGE))
    assert raised.value.exit_code == 2
    assert "\n" not in str(raised.value)
    assert not list(Path().glob("kcheck_*.py"))


LIGER = importlib.util.find_spec("liger_kernel") is not None


@pytest.mark.skipif(not LIGER, reason="liger-kernel is not installed")
@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("ops.rms_norm:rms_norm_forward", "_rms_norm_forward_kernel"),
        ("ops.swiglu:LigerSiLUMulFunction", "_swiglu_forward_kernel"),
        ("ops.softmax:LigerSoftmaxFunction", "_softmax_single_block_forward_kernel"),
        ("transformers.rms_norm:LigerRMSNorm", "_rms_norm_forward_kernel"),
    ],
)
def test_liger(client: Client, tmp_path: Path, name: str, kernel: str) -> None:
    init(f"liger_kernel.{name}", "-o", "kcheck_liger.py")
    assert kernel in Path("kcheck_liger.py").read_text()
    assert fuzzed("kcheck_liger.py", client, tmp_path).verdict is not CaseVerdict.COULD_NOT_CHECK


def test_the_text_is_python_of_one_target(client: Client) -> None:
    init(f"{PACKAGE}.ops:scale")
    text = Path("kcheck_scale.py").read_text()
    compile(text, "kcheck_scale.py", "exec")
    assert text == textwrap.dedent(text)
    assert len(loader.load("kcheck_scale.py")) == 1
