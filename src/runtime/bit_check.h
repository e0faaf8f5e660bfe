// Whether the devices of an engine keep the promise that a pass of several rows gives each the bits
// of a pass of its own: which kernels run is ggml's to choose, by the kind of device.
#pragma once

namespace knap {

class Forward;

// Tries passes of 2 to `n_rows` rows at the beginning of the cache, of which nothing is committed.
bool keeps_bits(Forward& forward, int n_rows);

}  // namespace knap
