// Reads a file with many kinds of damage. Code that reads our files must survive all of them.
#pragma once

#include <filesystem>
#include <functional>

namespace knap::test {

// Calls `read` with the file cut at many lengths, and with bits flipped at many positions. Restores
// the file afterwards.
void for_each_damage(const std::filesystem::path& path, const std::function<void()>& read);

}  // namespace knap::test
