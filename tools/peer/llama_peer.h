// libllama running the same model: the reference for our forward pass in tests, and the other side
// of comparisons in benchmarks.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "knap/types.h"

#include "tools/peer/peer_options.h"

namespace knap {

class LlamaPeer {
  public:
    explicit LlamaPeer(const std::filesystem::path& path, const PeerOptions& options = {});
    ~LlamaPeer();
    LlamaPeer(LlamaPeer&&) noexcept;

    enum class Logits { last_row, every_row };
    // Appends `tokens` to those fed before. Returns the logits of the requested rows, [n_vocab]
    // each, valid until the next feed.
    std::vector<std::span<const float>> feed(std::span<const Token> tokens, Logits wanted);
    void truncate(int n_rows);  // drops the rows from `n_rows` on

    int n_rows() const;
    int n_ctx() const;  // how many there may be

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
