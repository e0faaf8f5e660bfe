// The record of a long comparison: JSON Lines, a line for every case that is finished. It grows as
// cases end, so that a later run goes on behind them; runs on several models and instruction sets
// may share one file, one after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file_lock.h"
#include "base/written_file.h"
#include "tools/check/lossless_check.h"

namespace knap {

// An answer of a strategy, compared with plain decoding's.
struct ComparedAnswer {
    std::string sampling;    // in words
    std::string constraint;  // likewise
    int n_prompt = 0;
    int n_tokens = 0;  // that are the same
    int n_drafted = 0;
    int n_accepted = 0;
    // Parts of n_drafted, by source; and of n_accepted: what a grammar forced.
    int n_copied = 0;
    int n_planned = 0;
    int n_cascaded = 0;
    int n_forced = 0;
    std::optional<Divergence> difference{};
};

// A strategy's answers to the requests of a conversation.
struct CompletedCase {
    std::string run;  // identifies everything that cases depend on but their number
    int number = 0;
    std::string model;  // path
    std::string kernels;
    std::string contender;
    std::string strategy;
    // What was drawn for its engine, by name: {"cache", "q8_0"}.
    std::vector<std::pair<std::string, std::string>> variant{};
    std::vector<ComparedAnswer> answers{};
    // The flags of `knap check` that repeat it.
    std::string flags{};

    bool differs() const;
};

std::string to_line(const CompletedCase& done);  // without a line break
// Throws knap::Error whose message follows the line's place.
CompletedCase case_from(const std::string& line);

class ExactnessRecord {
  public:
    // Reads what the file has, or begins it; an empty path: a record that is not kept. A last line
    // without its end, of a process that was killed, is dropped. Throws knap::Error when the file
    // is no record, cannot be written, or is in use by another process.
    explicit ExactnessRecord(const std::filesystem::path& path);

    std::span<const CompletedCase> cases() const { return cases_; }
    bool has(const std::string& run, int number) const { return known_.contains({run, number}); }
    // Throws knap::Error when it cannot be written.
    void add(CompletedCase done);

  private:
    void read(const std::filesystem::path& path);
    void keep(CompletedCase done);

    std::unique_ptr<WrittenFile> file_;  // null: not kept
    std::unique_ptr<FileLock> lock_;
    std::uint64_t n_bytes_ = 0;
    std::vector<CompletedCase> cases_;
    std::set<std::pair<std::string, int>> known_;
};

}  // namespace knap
