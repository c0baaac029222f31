"""Operators of the Liger-kernel package as kcheck targets: the package's code as it stands, forward and backward.

Each says how to call the operator, what is right in plain PyTorch, and which arguments there are. What the operators
overwrite by design is declared as consumed: SwiGLU and GEGLU keep gradients in the saved activations, RMSNorm and
PolyNorm in the incoming gradient, cross entropy in the logits, and RoPE turns its arguments where they lie.

The last two targets are the arguments that an operator accepts and gets wrong; see test_liger.py. The same operators in
bfloat16 are in operators_bf16.py.
"""
# mypy: ignore-errors

import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from liger_kernel import ops
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction

import kcheck
from kcheck import strategies as ks

DTYPE = "float32"


def tensors(shape, **options):
    return ks.tensors(shape, DTYPE, **options)


@st.composite
def rows(draw, *names, vectors=(), kinds=ks.ANY, exponent=0):
    """Cases of operators along rows: matrices of one shape by `names`, `vectors` of their width, a gradient."""
    shape = (draw(ks.dims("rows", max_value=9)), draw(ks.dims("columns", max_value=40)))
    found = {name: draw(tensors(shape, kinds=kinds, exponent=exponent)) for name in names}
    found |= {name: draw(tensors(shape[1:])) for name in vectors}
    return kcheck.Case(**found, grad_output=draw(tensors(shape)))


def rms(x, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


@kcheck.target(
    cases=rows("x", vectors=["w"]), oracle=lambda x, w: rms(x) * w, grad=["x", "w"], consumed=["grad_output"]
)
def rms_norm(x, w):
    return ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", True)


@kcheck.target(
    cases=rows("x", vectors=["w", "b"]),
    oracle=lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    grad=["x", "w", "b"],
)
def layer_norm(x, w, b):
    return ops.LigerLayerNormFunction.apply(x, w, b, 1e-5)


@kcheck.target(cases=rows("a", "b"), oracle=lambda a, b: F.silu(a) * b, grad=["a", "b"], consumed=["a", "b"])
def swiglu(a, b):
    return ops.LigerSiLUMulFunction.apply(a, b)


@kcheck.target(
    cases=rows("a", "b"), oracle=lambda a, b: F.gelu(a, approximate="tanh") * b, grad=["a", "b"], consumed=["a", "b"]
)
def geglu(a, b):
    return ops.LigerGELUMulFunction.apply(a, b)


@kcheck.target(cases=rows("x"), oracle=lambda x: x.softmax(-1), grad=["x"])
def softmax(x):
    return ops.LigerSoftmaxFunction.apply(x)


@kcheck.target(cases=rows("x"), oracle=lambda x: F.relu(x).square(), grad=["x"])
def relu_squared(x):
    return ops.LigerReLUSquaredFunction.apply(x)


@st.composite
def dyt_cases(draw):
    shape = (draw(ks.dims("rows", max_value=9)), draw(ks.dims("columns", max_value=40)))
    vectors = {name: draw(tensors(shape[1:])) for name in ("gamma", "beta")}
    x, alpha, grad = draw(tensors(shape)), draw(tensors((1,))), draw(tensors(shape))
    return kcheck.Case(x=x, alpha=alpha, **vectors, grad_output=grad)


@kcheck.target(
    cases=dyt_cases(),
    oracle=lambda x, alpha, gamma, beta: torch.tanh(alpha * x) * gamma + beta,
    grad=["x", "alpha", "gamma", "beta"],
)
def dyt(x, alpha, gamma, beta):
    return ops.LigerDyTFunction.apply(x, alpha, gamma, beta)


@st.composite
def residual_cases(draw):
    shape = (draw(ks.dims("rows", max_value=9)), draw(ks.dims("columns", max_value=40)))
    x, r, w = draw(tensors(shape)), draw(tensors(shape)), draw(tensors(shape[1:]))
    return kcheck.Case(x=x, r=r, w=w, grad_output=[draw(tensors(shape)), draw(tensors(shape))])


@kcheck.target(
    cases=residual_cases(), oracle=lambda x, r, w: (rms(x + r) * w, x + r), grad=["x", "r", "w"],
    consumed=["grad_output"],
)  # fmt: skip
def fused_add_rms_norm(x, r, w):
    return ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", True)


@st.composite
def poly_cases(draw):
    shape = (draw(ks.dims("rows", max_value=9)), draw(ks.dims("columns", max_value=40)))
    x, w, b = draw(tensors(shape)), draw(tensors((3,))), draw(tensors(()))
    return kcheck.Case(x=x, w=w, b=b, grad_output=draw(tensors(shape)))


@kcheck.target(
    cases=poly_cases(), oracle=lambda x, w, b: w[0] * rms(x**3) + w[1] * rms(x**2) + w[2] * rms(x) + b,
    grad=["x", "w", "b"], consumed=["grad_output"],
)  # fmt: skip
def poly_norm(x, w, b):
    return ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, True)


@st.composite
def group_cases(draw):
    # No group is nearly constant: a variance in one pass, E[x²] - E[x]², has no digits left there.
    groups, width = draw(ks.dims("groups", max_value=3)), draw(ks.dims("channels_per_group", max_value=3))
    shape = (draw(ks.dims("batch", max_value=4)), groups * width, draw(ks.dims("hidden", min_value=8, max_value=33)))
    vectors = {name: draw(tensors(shape[1:2])) for name in ("w", "b")}
    x = draw(tensors(shape, kinds=ks.ANY.without("expanded")))
    return kcheck.Case(x=x, **vectors, groups=groups, grad_output=draw(tensors(shape)))


@kcheck.target(
    cases=group_cases(), oracle=lambda x, w, b, groups: F.group_norm(x, groups, w, b, 1e-5), grad=["x", "w", "b"]
)
def group_norm(x, w, b, groups):
    return ops.LigerGroupNormFunction.apply(x, w, b, x.shape[1], groups, 1e-5)


@st.composite
def loss_cases(draw):
    shape = (draw(ks.dims("tokens", max_value=9)), draw(ks.dims("vocabulary", max_value=40)))
    pair = {name: draw(tensors(shape)) for name in ("p", "q")}
    return kcheck.Case(**pair, grad_output=draw(tensors(())))


@kcheck.target(
    cases=loss_cases(),
    oracle=lambda p, q: F.kl_div(p.log_softmax(-1), q.softmax(-1), reduction="batchmean"),
    grad=["p"],
)
def kl_div(p, q):
    return ops.LigerKLDivLossFunction.apply(p.log_softmax(-1), q.softmax(-1), "batchmean", False, 1e-10)


@kcheck.target(
    cases=loss_cases(),
    oracle=lambda p, q: (p.softmax(-1) - q.softmax(-1)).abs().sum() / (2 * p.shape[0]),
    grad=["p"],
)
def tvd(p, q):
    return ops.LigerTVDLossFunction.apply(p.softmax(-1), q.softmax(-1), None, "batchmean", -100)


def jensen_shannon(p, q):
    p, q = p.log_softmax(-1), q.log_softmax(-1)
    middle = ((p.exp() + q.exp()) / 2).log()
    return (q.exp() * (q - middle) + p.exp() * (p - middle)).sum() / (2 * p.shape[0])


@kcheck.target(cases=loss_cases(), oracle=jensen_shannon, grad=["p"])
def jsd(p, q):
    return ops.LigerJSDFunction.apply(p.log_softmax(-1), q.log_softmax(-1), None, 0.5, -100)


@st.composite
def entropy_cases(draw, kinds):
    shape = (draw(ks.dims("tokens", max_value=9)), draw(ks.dims("vocabulary", min_value=2, max_value=40)))
    labels = draw(ks.indices(shape[:1], bound=shape[1], dtype="int64"))
    return kcheck.Case(logits=draw(tensors(shape, kinds=kinds)), labels=labels, grad_output=draw(tensors(())))


def entropy(kinds, name):
    return kcheck.target(
        cases=entropy_cases(kinds), name=name, oracle=lambda logits, labels: F.cross_entropy(logits, labels),
        grad=["logits"], consumed=["logits"],
    )(lambda logits, labels: ops.LigerCrossEntropyFunction.apply(logits, labels, None)[0])  # fmt: skip


cross_entropy = entropy(ks.CONTIGUOUS_LAST.without("expanded"), "cross_entropy")


@st.composite
def embedding_cases(draw):
    count, width = draw(ks.dims("embeddings", min_value=2, max_value=9)), draw(ks.dims("width", max_value=33))
    tokens = draw(ks.dims("tokens", max_value=9))
    indices = draw(ks.indices((tokens,), bound=count, dtype="int64"))
    table = draw(tensors((count, width)))
    return kcheck.Case(table=table, indices=indices, grad_output=draw(tensors((tokens, width))))


@kcheck.target(cases=embedding_cases(), oracle=lambda table, indices: F.embedding(indices, table), grad=["table"])
def embedding(table, indices):
    return LigerEmbeddingFunction.apply(table, indices)


@st.composite
def sparsemax_cases(draw):
    shape = (draw(ks.dims("rows", max_value=9)), draw(ks.dims("columns", max_value=20)))
    return kcheck.Case(x=draw(tensors(shape)), grad_output=draw(tensors(shape)))


def project(x):
    ordered = x.sort(-1, descending=True).values
    sums, count = ordered.cumsum(-1) - 1, torch.arange(1, x.shape[-1] + 1, device=x.device)
    support = (count * ordered > sums).sum(-1, keepdim=True)
    return (x - sums.gather(-1, support - 1) / support).clamp(min=0)


@kcheck.target(cases=sparsemax_cases(), oracle=project, grad=["x"])
def sparsemax(x):
    return ops.LigerSparsemaxFunction.apply(x, -1)


@st.composite
def rope_cases(draw, min_tokens, max_tokens):
    batch, heads = draw(ks.dims("batch", max_value=3)), draw(ks.dims("heads", max_value=4))
    tokens, half = (
        draw(ks.dims("tokens", min_value=min_tokens, max_value=max_tokens)),
        draw(ks.dims("half", max_value=8)),
    )
    shapes = [(batch, heads, tokens, 2 * half), (batch, 1, tokens, 2 * half)]
    angles = {name: draw(tensors((1, tokens, 2 * half))) for name in ("cos", "sin")}
    q, k = (draw(tensors(shape)) for shape in shapes)
    return kcheck.Case(q=q, k=k, **angles, grad_output=[draw(tensors(shape)) for shape in shapes])


def rotated(q, k, cos, sin):
    def turned(x):
        a, b = x.chunk(2, -1)
        c, s = (half.chunk(2, -1)[0].unsqueeze(1) for half in (cos, sin))
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    return turned(q), turned(k)


def rotation(tokens, name):
    return kcheck.target(
        cases=rope_cases(*tokens), name=name, oracle=rotated, grad=["q", "k"], consumed=["q", "k", "grad_output"]
    )(lambda q, k, cos, sin: ops.LigerRopeFunction.apply(q, k, cos, sin))


rope = rotation((2, 5), "rope")
cross_entropy_transposed = entropy(["transposed"], "cross_entropy_transposed")
rope_one_token = rotation((1, 1), "rope_one_token")
