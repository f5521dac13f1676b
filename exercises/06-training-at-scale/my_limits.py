"""Your second part of 6.3: how many ranks data, sharded data and tensor parallelism can use before computing waits for links.

You will learn    which messages of each way can hide behind computing, and why that ends with more ranks
You will produce  the largest number of ranks for any model, batch, GPU and links
Try it            gpucourse try 6.3
Your part         the body of `largest`; keep its name and parameters
Reading           modules/06-training-at-scale/lesson-6-layouts.md, "How far a way of dividing scales"
"""

from __future__ import annotations


def largest(way: str, cluster: dict) -> int:
    """Return the largest number of ranks with which computing does not wait for messages in inner layers: a power of two, at
    most 4,096.

    `way` is "data", "sharded" or "tensor". `cluster` has the values of step_limits.Cluster: width, heads, length, sequences,
    weight_bytes, gradient_bytes, flop_per_s, ranks_per_node, inside_bytes_per_s and between_bytes_per_s. The batch of a step is
    the same for any number of ranks. A layer has 12 · width² weights, and each of them takes 2 operations forward and 4
    backward for each token. Each rank computes at flop_per_s, and sends one message at a time. Collectives are rings; if a ring
    has ranks on several nodes, its slowest link sets the pace.

    - "data": each rank has the whole model and whole sequences. When a layer's backward is done, its gradients are
      summed (gradient_bytes per number) while backward continues with the layer before it.
    - "sharded": each rank has a share of every weight. A layer's weights are gathered while the layer before it computes, in
      forward and once more in backward (weight_bytes per number). Its gradients are reduced and scattered after its backward.
    - "tensor": the ranks divide the heads and each layer's weights, and all compute the whole batch. A layer sums its output
      twice forward and twice backward; each sum has width numbers (weight_bytes each) for each token. The batch is cut in two
      halves: while the sums of one half are sent, the other half computes.
    """
    raise NotImplementedError("largest: which message has the least computing to hide behind?")
