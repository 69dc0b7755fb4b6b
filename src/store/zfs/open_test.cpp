// The order of what a store does when it is opened, told by the commands that it gives.

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/zfs/marker.hpp"
#include "store/zfs/output.hpp"
#include "store/zfs/zfs_store.hpp"

namespace zed::store::zfs {
namespace {

/// What an agent left that died while it put files into place.
std::string half_applied() {
  Marker marker;
  marker.kind = StreamKind::files;
  marker.snapshot.bytes.fill(2);
  marker.base.emplace().bytes.fill(1);
  marker.phase = Marker::Phase::applying;
  marker.word = "v2";
  return encode_value(marker.str());
}

/// A pool with one dataset; writes down each command.
class Pool final : public Commands {
public:
  explicit Pool(std::vector<std::string>& said) : said_(said) {}

  Result<Output> run(const Arguments& arguments, std::string_view) override {
    said_.push_back(arguments.at(0) + " " + arguments.at(1));
    Output output;
    output.ok = true;
    output.out = answer(arguments);
    return output;
  }
  Result<std::unique_ptr<Child>> start(const Arguments& arguments, Pipe) override {
    said_.push_back(arguments.at(0) + " " + arguments.at(1));
    return fail(ErrorCode::unsupported, "no pipes here");
  }

private:
  static std::string answer(const Arguments& arguments) {
    const std::string& verb = arguments.at(1);
    bool below = std::count(arguments.begin(), arguments.end(), "-r") != 0;
    const std::string& last = arguments.back();
    if (verb == "version") return "zfs-2.1.11-1\nzfs-kmod-2.1.11-1\n";
    if (verb == "program") return R"({"return":{"what":"done"}})";
    if (verb == "list") return "zed-test/m@v1\t1\t2\n";
    if (verb != "get") return {};
    if (last == "zed-test/m@v1") return last + "\tguid\t1\t-\n" + last + "\tcreatetxg\t2\t-\n";
    if (last == "zed-test" && !below) return "zed-test\tguid\t4\t-\n";
    return "zed-test\tguid\t4\t-\nzed-test/m\tguid\t5\t-\nzed-test/m\tcom.zed:rx\t" +
           half_applied() + "\tlocal\n";
  }

  std::vector<std::string>& said_;
};

/// Otherwise a rollback of its own would seem a person's, who wants the job's timeline to fork.
TEST(ZfsOpening, ListensBeforeItRollsBack) {
  std::vector<std::string> said;
  auto store = open_zfs_store("zed-test", std::make_unique<Pool>(said), true);
  ASSERT_TRUE(store) << store.error().describe();
  auto listens = std::find(said.begin(), said.end(), "zpool events");
  auto rolls_back = std::find(said.begin(), said.end(), "zfs rollback");
  ASSERT_NE(rolls_back, said.end());
  EXPECT_LT(listens, rolls_back);
}

}  // namespace
}  // namespace zed::store::zfs
