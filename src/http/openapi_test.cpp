// The document says what the table has, and nothing dangles.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>
#include <string_view>

#include "api/operations.hpp"
#include "base/json.hpp"
#include "http/openapi.hpp"

namespace zed::http {
namespace {

const Value& at(const Value& value, std::initializer_list<std::string_view> path) {
  const Value* here = &value;
  for (const std::string_view key : path) {
    here = here->find(key);
    if (here == nullptr) throw std::out_of_range(std::string(key));
  }
  return *here;
}

void collect_references(const Value& value, std::set<std::string>& found) {
  if (const auto* members = value.as_map())
    for (const Value::Member& member : *members) {
      if (member.key == "$ref") found.insert(*member.value.as_text());
      collect_references(member.value, found);
    }
  if (const auto* items = value.as_list())
    for (const Value& item : *items)
      collect_references(item, found);
}

TEST(OpenApi, HasEveryOperationOfTheTable) {
  const Value document = openapi_document();
  for (const api::OperationInfo& info : api::all_operations()) {
    const Value& post = at(document, {"paths", "/v1/" + std::string(info.name), "post"});
    EXPECT_EQ(*at(post, {"operationId"}).as_text(), info.name);
    EXPECT_EQ(*at(post, {"summary"}).as_text(), info.help);
    EXPECT_EQ(*at(post, {"x-changes"}).as_bool(), info.changes);
  }
}

TEST(OpenApi, ArgumentsAndRepliesAreThoseOfTheTypes) {
  const Value document = openapi_document();
  const Value& rollback = at(document, {"paths", "/v1/rollback", "post", "requestBody", "content",
                                        "application/json", "schema", "properties"});
  EXPECT_EQ(to_json(at(rollback, {"discard"})), R"({"type":"boolean"})");
  EXPECT_EQ(to_json(at(rollback, {"job"})), R"({"type":"string"})");
  const Value& job = at(document, {"components", "schemas", "JobRow", "properties"});
  EXPECT_EQ(*at(job, {"state", "enum"}).as_list()->front().as_text(), "pending");
  EXPECT_EQ(to_json(at(document, {"components", "schemas", "JobsReply", "properties", "jobs"})),
            R"({"type":"array","items":{"$ref":"#/components/schemas/JobRow"}})");
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  const Value document = openapi_document();
  std::set<std::string> references;
  collect_references(document, references);
  EXPECT_GT(references.size(), 20U);
  for (const std::string& reference : references) {
    // "#/components/schemas/JobRow"
    const std::size_t first = reference.find('/', 2);
    const std::size_t second = reference.find('/', first + 1);
    ASSERT_EQ(reference.substr(0, first), "#/components") << reference;
    const std::string kind = reference.substr(first + 1, second - first - 1);
    EXPECT_NE(at(document, {"components", kind}).find(reference.substr(second + 1)), nullptr)
        << reference;
  }
}

/// What clients are generated from does not change unnoticed.
TEST(OpenApi, IsTheGoldenFile) {
  const std::string path = ZED_SOURCE_DIR "/test/golden/openapi.json";
  const std::string document = to_json_pretty(openapi_document()) + "\n";
  if (std::getenv("ZED_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << document;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(golden.str(), document)
      << "read the difference, then run again with ZED_UPDATE_GOLDEN=1";
}

}  // namespace
}  // namespace zed::http
