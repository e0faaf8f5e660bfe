// Computes the checksum of bytes as they come, with OpenSSL, which libcurl needs anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "hub/listing.h"

namespace knap {

class Digester {
  public:
    // Of `n_bytes` bytes in all.
    Digester(Digest::Kind kind, std::uint64_t n_bytes);
    ~Digester();
    Digester(Digester&&) noexcept;
    Digester& operator=(Digester&&) noexcept;

    void add(std::span<const std::byte> bytes);
    // Adds a whole file. `on_progress` is told how many of its bytes are done, and may throw.
    // Throws knap::Error when the file cannot be read.
    void add_file(const std::filesystem::path& path,
                  const std::function<void(std::uint64_t)>& on_progress);
    Digest finish();  // once

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace knap
