"""What stands in every emitted test: where it runs, seeded values, decoys."""

MODULES = ("os", "subprocess", "sys", "pytest", "torch")  # that a test may import for itself
NAMES = frozenset({*MODULES, "GUARD", "DECOYS", "DEVICE", "hashed", "floats", "decoys", "dense", "main"})
HEAD = """
if __name__ == "__main__" and not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported
"""
GPU_FOOT = """
if __name__ == "__main__":
    if not torch.cuda.is_available():
        raise SystemExit("this needs a GPU")
    main()
    print("passed")
"""
FOOT = """
if __name__ == "__main__":
    main()
    print("passed")
"""
TEST = """
def {function}():
    if torch.cuda.is_available():
        main()
        return
    # Without a GPU in a process of its own: Triton's interpreter must be chosen before
    # Triton is imported, and other tests may have imported it.
    places = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, __file__],
        env=os.environ | {{"PYTHONPATH": places}},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
"""
GPU_TEST = """
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def {function}():
    main()
"""
CONSTANTS = """
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
GUARD = {guard}  # elements around every tensor's memory
DECOYS = {decoys}  # seed of what lies there
"""
HASHED = '''
def hashed(seed, count):
    """32 bits for each of `count` elements, the same on every machine."""

    def mix(x):  # "lowbias32", https://nullprogram.com/blog/2018/07/31/
        x = x & 0xFFFFFFFF
        x = ((x ^ (x >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
        x = ((x ^ (x >> 15)) * 0x846CA68B) & 0xFFFFFFFF
        return x ^ (x >> 16)

    return mix(mix(torch.arange(count) + (0x9E3779B9 * seed & 0xFFFFFFFF)) ^ mix(seed))
'''
FLOATS = '''
def floats(bits, digits, exponent=0):
    """Numbers in [-2**exponent, 2**exponent), exact with `digits` bits of mantissa."""
    k = (bits >> (31 - digits)) - (1 << digits)
    return k.double() * 2.0 ** (exponent - digits)
'''
DECOYS = '''
def decoys(count, dtype, low=0, high=0, device=DEVICE):
    """Memory of `count` elements between guards, full of valid but wrong values."""
    bits = hashed(DECOYS, count + 2 * GUARD)
    if dtype.is_floating_point:
        return (bits / 2**31 - 1).to(dtype).to(device)
    return (low + bits % (high - low + 1)).to(dtype).to(device)
'''
DENSE = '''
def dense(x):
    """A contiguous copy, for the reference."""
    return x.clone(memory_format=torch.contiguous_format)
'''
