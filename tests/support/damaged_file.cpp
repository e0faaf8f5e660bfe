#include "support/damaged_file.h"

#include <fstream>
#include <iterator>
#include <random>
#include <string>

namespace knap::test {
namespace {

constexpr std::size_t kCuts = 200;
constexpr int kFlips = 400;

std::string read_text(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

void for_each_damage(const std::filesystem::path& path, const std::function<void()>& read) {
    const std::string whole = read_text(path);
    for (std::size_t i = 0; i < kCuts; ++i) {
        write_bytes(path, whole.substr(0, whole.size() * i / kCuts));
        read();
    }
    std::mt19937 random(1);
    for (int i = 0; i < kFlips; ++i) {
        std::string flipped = whole;
        flipped[random() % flipped.size()] ^= static_cast<char>(1 + random() % 255);
        write_bytes(path, flipped);
        read();
    }
    write_bytes(path, whole);
}

}  // namespace knap::test
