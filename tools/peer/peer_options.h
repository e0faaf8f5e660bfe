// How libllama runs beside us.
#pragma once

namespace knap {

class Backend;

struct PeerOptions {
    int n_ctx = 1024;  // of each sequence
    int n_ubatch = 512;
    int n_threads = 1;
    bool flash_attention = false;
    bool repack = false;
    // Computes on this backend's device and with its threads, so that both sides wait and wake
    // alike. Must outlive the peer. Null: the CPU.
    Backend* beside = nullptr;
    // Conversations in one context, for LlamaBatch; LlamaPeer has one.
    int n_sequences = 1;
    bool kv_unified = false;  // one cache for all sequences; otherwise each has its own
};

}  // namespace knap
