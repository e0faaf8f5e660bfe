#include "fuzz/target.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

#include <sys/mman.h>
#include <unistd.h>

namespace knap::fuzz {

InputFile::InputFile(std::string_view bytes)
    : descriptor_(::memfd_create("input", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    while (!bytes.empty()) {
        const ssize_t n_written = ::write(descriptor_, bytes.data(), bytes.size());
        if (n_written <= 0) {
            throw std::system_error(errno, std::generic_category(), "an input file");
        }
        bytes.remove_prefix(static_cast<std::size_t>(n_written));
    }
}

InputFile::~InputFile() {
    ::close(descriptor_);
}

std::uint8_t Choices::byte() {
    if (rest_.empty()) {
        return 0;
    }
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
}

std::string_view Choices::line() {
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    return found;
}

std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + path.string());
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace knap::fuzz
