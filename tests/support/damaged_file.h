// A file read again and again, each time with other damage: whatever reads our files must survive
// all of it.
#pragma once

#include <filesystem>
#include <functional>

namespace knap::test {

// Calls `read` with the file cut at every one of many lengths, and with bits flipped at many
// places. The file is whole again afterwards.
void for_each_damage(const std::filesystem::path& path, const std::function<void()>& read);

}  // namespace knap::test
