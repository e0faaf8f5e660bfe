// The files of one repository that are in the cache folder, under the names that they have on the
// hub. A record beside each model, MODEL.gguf.json, says what its files were when they were
// checked: a model is used without reading it again while size and date of its files are as
// recorded. So a model is there until the first file of another version takes its place, and one of
// which a part is new does not count.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/listing.h"

namespace knap {

class HubCache {
  public:
    // Below `cache_folder`/hub. Creates nothing.
    HubCache(const std::filesystem::path& cache_folder, const std::string& repository);

    const std::filesystem::path& folder() const { return folder_; }
    std::filesystem::path path(const HubFile& file) const { return folder_ / file.path; }
    // While a file is being fetched. Other contents of the file have another name.
    std::filesystem::path partial_path(const HubFile& file) const;

    // The files of all models that are complete.
    std::vector<HubFile> files() const;
    // All of a model's files are there and as recorded.
    bool has(const std::vector<HubFile>& model) const;
    // Records a model whose files were checked. Throws knap::Error.
    void record(const std::vector<HubFile>& model) const;
    // Deletes what was fetched of other contents of the file.
    void remove_stale_partials(const HubFile& file) const;

  private:
    std::filesystem::path folder_;
};

}  // namespace knap
