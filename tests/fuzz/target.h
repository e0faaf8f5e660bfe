// What fuzzing runs: a function that reads bytes from outside as knap does. Bytes that are not what
// they should be end in knap::Error. Anything else is a bug: a crash, a sanitizer's report, another
// exception, much memory or time. `make fuzz` calls the functions with bytes that libFuzzer makes
// up, replay_test.cpp with the seeds and with what was found before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "knap/types.h"

namespace knap::fuzz {

struct Target {
    std::string_view name;
    void (*run)(std::string_view input);
    std::vector<std::string> (*seeds)();  // inputs to begin with
    std::size_t max_bytes = 4096;         // of an input
    // Sources, from the root of the repository, whose string literals are words of the inputs.
    std::vector<std::string_view> word_sources{};
};

// Calls `read`. Returns false if it refuses the input, with knap::Error.
template <typename Read>
bool is_accepted(const Read& read) {
    try {
        read();
        return true;
    } catch (const Error&) {
        return false;
    }
}

// Throws what ends the run as a crash.
inline void expect(bool is_true, const char* what) {
    if (!is_true) {
        throw std::logic_error(what);
    }
}

// A file in memory with a path, as long as the object lives.
class InputFile {
  public:
    explicit InputFile(std::string_view bytes);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    const std::filesystem::path& path() const { return path_; }

  private:
    int descriptor_;
    std::filesystem::path path_;
};

// Takes numbers from the front of an input, which choose what is done with the rest. Zeros follow
// its end.
class Choices {
  public:
    explicit Choices(std::string_view input) : rest_(input) {}

    std::uint8_t byte();
    std::uint32_t below(std::uint32_t n) { return byte() % n; }
    bool flag() { return (byte() & 1) != 0; }
    std::string_view line();  // without its end
    std::string_view rest() const { return rest_; }

  private:
    std::string_view rest_;
};

// The bytes of a file that a seed is made of.
std::string bytes_of(const std::filesystem::path& path);

}  // namespace knap::fuzz
