// libllama computing the same model: what our forward pass is held to in tests and compared with in
// benchmarks.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

namespace knap {

class Backend;

struct PeerOptions {
    int n_ctx = 1024;
    int n_ubatch = 512;
    int n_threads = 1;
    bool flash_attention = false;
    bool repack = false;
    // Computes where this backend does, and with its threads, so that both sides wait and wake
    // alike; must outlive the peer. Null: the CPU.
    Backend* beside = nullptr;
};

class LlamaPeer {
  public:
    explicit LlamaPeer(const std::filesystem::path& path, const PeerOptions& options = {});
    ~LlamaPeer();
    LlamaPeer(LlamaPeer&&) noexcept;

    enum class Logits { last_row, every_row };
    // Feeds `tokens` after what was fed before. The logits of the rows asked for, [n_vocab] each,
    // until the next feed.
    std::vector<std::span<const float>> feed(std::span<const Token> tokens, Logits wanted);
    void truncate(int n_rows);  // forgets rows from `n_rows` on
    int n_rows() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
