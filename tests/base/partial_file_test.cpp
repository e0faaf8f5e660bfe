#include "base/partial_file.h"

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "base/text_file.h"
#include "support/tiny_model.h"

namespace knap::test::partial_file_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::MatchesRegex;
using testing::UnorderedElementsAre;

// The name that a file is written under: the only one in its folder.
fs::path name_of_next(const fs::path& path) {
    const PartialFile file(path, 1);
    return fs::directory_iterator(path.parent_path())->path();
}

// The same name with the following number.
fs::path name_after(const fs::path& partial) {
    const std::string text = partial.string();
    const std::size_t dash = text.rfind('-');
    return concat(text.substr(0, dash + 1), std::stoi(text.substr(dash + 1)) + 1, ".partial");
}

class PartialFileTest : public ::testing::Test {
  protected:
    PartialFileTest() {
        fs::remove_all(folder_);
        fs::create_directories(folder_);
    }
    ~PartialFileTest() override { fs::remove_all(folder_); }

    void write(const std::string& name) const { std::ofstream(folder_ / name) << name; }
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const auto& entry : fs::directory_iterator(folder_)) {
            names.push_back(entry.path().filename().string());
        }
        return names;
    }

    fs::path folder_ = temporary_folder() / "partial_file";
    fs::path path_ = folder_ / "a.json";
};

TEST_F(PartialFileTest, HasItsNameOnceItIsPublished) {
    write("a.json");
    PartialFile file(path_, 3);
    file.write_at(0, std::as_bytes(std::span("new", 3)));
    EXPECT_EQ(read_text_file(path_, "file"), "a.json");
    file.publish();
    EXPECT_EQ(read_text_file(path_, "file"), "new");
    EXPECT_THAT(names(), ElementsAre("a.json"));
}

TEST_F(PartialFileTest, IsDeletedUnlessItIsPublished) {
    write("a.json");
    { const PartialFile file(path_, 3); }
    EXPECT_EQ(read_text_file(path_, "file"), "a.json");
    EXPECT_THAT(names(), ElementsAre("a.json"));
}

TEST_F(PartialFileTest, FollowsNoLinkThatIsThereAlready) {
    const fs::path guessed = name_after(name_of_next(path_));
    EXPECT_THAT(guessed.filename().string(), MatchesRegex("a\\.json\\.[0-9]+-[0-9]+\\.partial"));
    const fs::path victim = temporary_folder() / "victim";
    std::ofstream(victim) << "of somebody else";
    fs::create_symlink(victim, guessed);
    write_whole_file(path_, "ours");
    EXPECT_EQ(read_text_file(path_, "file"), "ours");
    EXPECT_EQ(read_text_file(victim, "file"), "of somebody else");
    EXPECT_FALSE(fs::is_symlink(path_));
    fs::remove(victim);
}

TEST_F(PartialFileTest, WhatAProcessThatIsNoMoreHasLeftIsDeleted) {
    write("a.json.123-1.partial");
    write_whole_file(path_, "new");
    EXPECT_THAT(names(), ElementsAre("a.json"));
}

TEST_F(PartialFileTest, NothingElseIsDeleted) {
    const std::vector<std::string> others{"a.json",
                                          "a.json.partial",
                                          "a.json.1.partial",
                                          "a.json.1-.partial",
                                          "a.json.-1.partial",
                                          "a.json.1-2-3.partial",
                                          "a.json.0123456789abcdef.partial",
                                          "a.json.1-1.partial.txt",
                                          "b.json.1-1.partial",
                                          "aajson.1-1.partial"};
    for (const std::string& name : others) {
        write(name);
    }
    write_whole_file(path_, "new");
    EXPECT_THAT(names(), testing::UnorderedElementsAreArray(others));
}

// Several processes, or objects of this one, may write the same file at once.
TEST_F(PartialFileTest, WhatOthersWriteIsNotDeleted) {
    PartialFile first(path_, 1);
    PartialFile second(path_, 1);
    EXPECT_EQ(names().size(), 2u);
    remove_abandoned(folder_, "a");
    EXPECT_EQ(names().size(), 2u);
    second.write_at(0, std::as_bytes(std::span("2", 1)));
    second.publish();
    EXPECT_EQ(read_text_file(path_, "file"), "2");
    first.write_at(0, std::as_bytes(std::span("1", 1)));
    first.publish();
    EXPECT_EQ(read_text_file(path_, "file"), "1");
    EXPECT_THAT(names(), ElementsAre("a.json"));
}

TEST_F(PartialFileTest, AbandonedFilesAreFoundByTheBeginningOfTheirNames) {
    for (const char* name : {"one-1.json.7-1.partial", "one-2.json.7-2.partial",
                             "two-1.json.7-3.partial", "one-1.json"}) {
        write(name);
    }
    remove_abandoned(folder_, "one-");
    EXPECT_THAT(names(), UnorderedElementsAre("two-1.json.7-3.partial", "one-1.json"));
    remove_abandoned(folder_ / "missing", "one-");
}

TEST_F(PartialFileTest, PlacesThatCannotBeAreErrors) {
    write("a_file");
    for (const fs::path& path :
         {fs::path(), folder_, folder_ / "missing" / "a", folder_ / "a_file" / "a"}) {
        EXPECT_THROW(PartialFile(path, 1), Error) << path;
    }
    EXPECT_THAT(names(), ElementsAre("a_file"));
}

}  // namespace
}  // namespace knap::test::partial_file_test
