// Which files of a repository a reference means, by llama.cpp's rules.
#pragma once

#include <vector>

#include "hub/listing.h"
#include "hub/reference.h"

namespace knap {

// The file, or all parts of it in order where it is split. Without a file name, it is the first
// whose name has the quant; without a quant, the first with Q4_K_M, else with Q8_0, else the first
// of all. Files that belong to a model but are none (projectors, draft heads) are passed over.
// Throws knap::Error, which lists what there is, when no file fits or a part is missing.
std::vector<HubFile> choose_files(const std::vector<HubFile>& files, const HubReference& reference);

}  // namespace knap
