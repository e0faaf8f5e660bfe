#include "base/resumable_file.h"

#include <utility>

namespace knap {

ResumableFile::ResumableFile(std::filesystem::path path, std::filesystem::path partial_path)
    : path_(std::move(path)), file_(std::move(partial_path), 0), n_bytes_(file_.size()) {}

ResumableFile::~ResumableFile() {
    if (n_bytes_ == 0) {  // nothing to go on from
        file_.remove();
    }
}

void ResumableFile::append(std::span<const std::byte> bytes) {
    file_.write_at(n_bytes_, bytes);
    n_bytes_ += bytes.size();
}

void ResumableFile::restart() {
    file_.resize(0);
    n_bytes_ = 0;
}

void ResumableFile::publish() {
    file_.sync();
    file_.move_to(path_);
}

}  // namespace knap
