// Reads the fields <architecture>.<field> of a model file and checks each against its range. Every
// error names the file and the key, what was expected and what was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "model/gguf/gguf_file.h"

namespace knap {

class ConfigReader {
  public:
    ConfigReader(const GgufFile& file, std::string_view architecture)
        : file_(file), prefix_(std::string(architecture) + ".") {}

    const GgufFile& file() const { return file_; }
    std::string key(std::string_view field) const { return prefix_ + std::string(field); }
    std::string_view architecture() const {
        return std::string_view(prefix_).substr(0, prefix_.size() - 1);
    }

    // Counts from 1 to `limit`.
    int count(std::string_view field, int limit) const;  // throws when absent
    int count_or(std::string_view field, int fallback, int limit) const;
    // A count that a file may also give per layer, if all layers have the same. Returns
    // nullopt when absent.
    std::optional<int> uniform_count(std::string_view field, int n_layers, int limit) const;

    // A finite number. Returns nullopt when absent.
    std::optional<float> number(std::string_view field) const;

    template <typename Expected, typename Found>
    [[noreturn]] void fail_field(std::string_view field,
                                 const Expected& expected,
                                 const Found& found) const {
        fail(file_.path().string(), ": key ", key(field), ": expected ", expected, ", found ",
             found);
    }

    // What knap does not compute: `meaning` says what it is, `nearest` what runs and comes closest.
    template <typename Expected, typename Found>
    [[noreturn]] void fail_unsupported(std::string_view field,
                                       const Expected& expected,
                                       const Found& found,
                                       std::string_view meaning,
                                       std::string_view nearest) const {
        fail_field(field, expected,
                   concat(found, " (", meaning, ", not supported; the nearest is ", nearest, ")"));
    }

  private:
    int checked_count(std::string_view field, std::uint64_t value, int limit) const;

    const GgufFile& file_;
    std::string prefix_;
};

}  // namespace knap
