"""The view check compiled into kernels: bounds of every access, at nearly the speed of the kernel itself."""
