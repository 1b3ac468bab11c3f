"""Reference definitions of the Ditto v0.4 networks (PyTorch, inference only).

Parameter names equal those of the public state dicts, so released `.pth` files load with
strict=True. The maths follows the Ditto paper (arXiv 2411.19509), LivePortrait (arXiv 2407.03168),
HuBERT (arXiv 2106.07447), EDGE (arXiv 2211.10658) and SPADE (arXiv 1903.07291).
"""
