// Writes what `make fuzz` begins with, for every target: FOLDER/<target>/ with the seeds,
// FOLDER/<target>.dict with the words of its inputs, and FOLDER/<target>.size, the most bytes of an
// input.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>

#include "fuzz/material.h"
#include "fuzz/targets.h"

namespace {

namespace fs = std::filesystem;
using namespace knap::fuzz;

constexpr std::size_t kLongestWord = 64;

void write(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

// As libFuzzer reads words: with escapes for all but plain characters.
std::string quoted(const std::string& word) {
    std::string text = "\"";
    for (const char c : word) {
        char escape[5];
        std::snprintf(escape, sizeof escape, "\\x%02X", static_cast<unsigned char>(c));
        text += c <= ' ' || c > '~' || c == '"' || c == '\\' ? escape : std::string(1, c);
    }
    return text + "\"\n";
}

std::string dictionary(const Target& target) {
    std::set<std::string> words;
    for (const std::string_view source : target.word_sources) {
        for (const std::string& literal : string_literals(source)) {
            if (literal.size() <= kLongestWord) {
                words.insert(quoted(literal));
            }
        }
    }
    std::string text;
    for (const std::string& word : words) {
        text += word;
    }
    return text;
}

void write_target(const fs::path& folder, const Target& target) {
    const std::string name(target.name);
    fs::remove_all(folder / name);
    fs::create_directories(folder / name);
    int n_written = 0;
    for (const std::string& seed : target.seeds()) {
        if (seed.size() <= target.max_bytes) {
            write(folder / name / std::to_string(n_written++), seed);
        }
    }
    write(folder / (name + ".dict"), dictionary(target));
    write(folder / (name + ".size"), std::to_string(target.max_bytes));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::cerr << "usage: fuzz_seeds FOLDER\n";
        return 1;
    }
    for (const Target& target : all_targets()) {
        write_target(argv[1], target);
    }
    return 0;
}
