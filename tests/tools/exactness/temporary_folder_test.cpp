#include "tools/exactness/temporary_folder.h"

#include <fstream>

#include <gtest/gtest.h>

#include "knap/types.h"

#include "support/environment_variable.h"

namespace knap::test::temporary_folder_test {
namespace {

TEST(TemporaryFolder, IsDeletedWithEverythingInIt) {
    std::filesystem::path path;
    {
        const TemporaryFolder folder;
        const TemporaryFolder other;
        EXPECT_NE(folder.path(), other.path());
        path = folder.path();
        std::filesystem::create_directory(path / "inner");
        std::ofstream(path / "inner" / "file") << "text";
        EXPECT_TRUE(std::filesystem::is_directory(path));
    }
    EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TemporaryFolder, SaysWhereItCannotBe) {
    const EnvironmentVariable place("TMPDIR", "/no/such/folder");
    EXPECT_THROW(TemporaryFolder(), Error);
}

}  // namespace
}  // namespace knap::test::temporary_folder_test
