#include "core/roots.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace zed {
namespace {

constexpr std::array<const char*, 3> own_roots{"models", "jobs", "zed"};

}  // namespace

std::vector<DatasetName> declared_roots(const Cluster& cluster) {
  std::set<DatasetName> roots;
  for (const DeclaredModel& model : cluster.models)
    roots.insert(model.dataset);
  for (const DeclaredData& data : cluster.data)
    roots.insert(data.dataset);
  for (const Job& job : cluster.jobs)
    roots.insert(job.dataset);
  return {roots.begin(), roots.end()};
}

bool may_be_made(const DatasetName& name, const std::vector<DatasetName>& declared) {
  return std::any_of(own_roots.begin(), own_roots.end(),
                     [&](const char* root) { return name.is_under(root); }) ||
         std::any_of(declared.begin(), declared.end(),
                     [&](const DatasetName& root) { return name.is_under(root.str()); });
}

}  // namespace zed
