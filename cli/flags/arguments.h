// Rewrites the command line for CLI11, which accepts only one letter after a single dash.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/App.hpp>

namespace knap {

// A llama.cpp flag with one dash and several letters.
struct Alias {
    std::string_view spelling;
    std::string_view long_name;  // without its dashes
};

inline constexpr Alias kAliases[] = {
    {"-ub", "ubatch-size"},   {"-fa", "flash-attn"}, {"-ctk", "cache-type-k"},
    {"-ctv", "cache-type-v"}, {"-sys", "system"},    {"-ngl", "n-gpu-layers"},
    {"-np", "parallel"},      {"-to", "timeout"},    {"-hf", "hf-repo"},
    {"-hfr", "hf-repo"},      {"-hff", "hf-file"},   {"-hft", "hf-token"},
    {"-rea", "reasoning"},
};

// Gives each flag a name that `root` or its command knows, followed by its value: expands aliases
// and splits `--flag=value`. Leaves values as they are, even when they look like flags. Throws
// UsageError for an unknown command or flag, a missing value, or a word that belongs to no flag.
std::vector<std::string> spell_out(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace knap
