#include "base/resumable_file.h"

#include <fstream>
#include <iterator>
#include <string_view>

#include <gtest/gtest.h>

#include "knap/types.h"

#include "support/tiny_model.h"

namespace knap::resumable_file_test {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

std::string contents(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

class ResumableFiles : public testing::Test {
  protected:
    ResumableFiles() {
        fs::remove(path_);
        fs::remove(partial_);
    }
    const fs::path path_ = temporary_folder() / "resumable.bin";
    const fs::path partial_ = temporary_folder() / "resumable.bin.partial";
};

TEST_F(ResumableFiles, GoOnWhereTheLastOneStopped) {
    ResumableFile(path_, partial_).append(bytes_of("one "));
    EXPECT_FALSE(fs::exists(path_));
    ResumableFile file(path_, partial_);
    EXPECT_EQ(file.size(), 4u);
    file.append(bytes_of("two"));
    file.publish();
    EXPECT_EQ(contents(path_), "one two");
    EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(ResumableFiles, StayUnlessTheyAreEmpty) {
    { ResumableFile(path_, partial_); }
    EXPECT_FALSE(fs::exists(partial_));
    { ResumableFile(path_, partial_).append(bytes_of("x")); }
    EXPECT_EQ(contents(partial_), "x");
    { ResumableFile(path_, partial_).restart(); }
    EXPECT_FALSE(fs::exists(partial_));
}

TEST_F(ResumableFiles, RestartAndDiscardDropWhatWasWritten) {
    ResumableFile file(path_, partial_);
    file.append(bytes_of("wrong and long"));
    file.restart();
    EXPECT_EQ(file.size(), 0u);
    file.append(bytes_of("right"));
    EXPECT_EQ(contents(partial_), "right");
    file.discard();
    EXPECT_FALSE(fs::exists(partial_));
    EXPECT_FALSE(fs::exists(path_));
}

TEST_F(ResumableFiles, PlacesThatCannotBeWrittenAreErrors) {
    EXPECT_THROW(ResumableFile(path_, temporary_folder() / "nowhere" / "x"), Error);
}

}  // namespace
}  // namespace knap::resumable_file_test
