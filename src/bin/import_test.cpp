#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "bin/import.hpp"
#include "store/dir/dir_store.hpp"
#include "store/dir/disk.hpp"

namespace zed::bin {
namespace {

namespace fs = std::filesystem;

/// A store and files beside it, gone at the end.
class Import : public ::testing::Test {
protected:
  Import() {
    root_ = fs::temp_directory_path() / ("zed-import-" + std::to_string(::getpid()));
    fs::remove_all(root_);
    fs::create_directories(root_ / "files");
    store_ = std::move(*store::open_dir_store(root_ / "pool", "tank"));
  }
  ~Import() override {
    store_.reset();
    fs::remove_all(root_);
  }

  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / "files" / name).parent_path());
    std::ofstream(root_ / "files" / name, std::ios::binary) << text;
  }
  ImportFiles order(const std::string& path, const std::string& type = "model") {
    ImportFiles import;
    import.dataset = *DatasetName::parse("models/m");
    import.path = (root_ / "files" / path).string();
    import.snapshot_name = "v1";
    import.snapshot = *CheckpointId::parse("0123456789abcdef0123456789abcdef");
    import.properties = {{"type", type}, { "uuid", "fedcba9876543210fedcba9876543210" }};
    return import;
  }
  Properties imported(const ImportFiles& import) {
    auto snapshot = import_files(*store_, import);
    EXPECT_TRUE(snapshot) << (snapshot ? "" : snapshot.error().describe());
    return store_->inspect(import.dataset)->properties;
  }
  std::string error_of(const ImportFiles& import) {
    auto snapshot = import_files(*store_, import);
    return snapshot ? "" : snapshot.error().describe();
  }
  std::string live(const std::string& name) {
    auto path = store_->snapshot_path({*DatasetName::parse("models/m"), "v1"});
    std::ifstream file(*path / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path root_;
  std::unique_ptr<env::Store> store_;
};

std::string le(std::uint64_t n, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i)
    text.push_back(static_cast<char>(n >> (8 * i)));
  return text;
}

/// A GGUF file of one tensor of 32 numbers, part `number` of `count`.
std::string gguf(std::uint32_t number = 1, std::uint32_t count = 1) {
  std::string text = "GGUF" + le(3, 4) + le(1, 8) + le(3, 8);
  text += le(20, 8) + "general.architecture" + le(8, 4) + le(5, 8) + "llama";
  text += le(8, 8) + "split.no" + le(2, 4) + le(number - 1, 2);
  text += le(11, 8) + "split.count" + le(2, 4) + le(count, 2);
  text += le(1, 8) + "t" + le(1, 4) + le(32, 8) + le(8, 4) + le(0, 8);  // q8_0
  text.resize((text.size() + 31) / 32 * 32);
  return text + std::string(34, 'x');
}

TEST_F(Import, a_file_brings_its_facts_and_its_hash) {
  write("m.gguf", gguf());
  const Properties p = imported(order("m.gguf"));
  EXPECT_EQ(p.at("format"), "gguf");
  EXPECT_EQ(p.at("architecture"), "llama");
  EXPECT_EQ(p.at("quantized"), "q8_0");
  EXPECT_EQ(p.at("parameters"), "32");
  EXPECT_EQ(p.at("bits_per_weight"), "8.50");
  EXPECT_EQ(p.at("sha256").size(), 64u);
  EXPECT_FALSE(p.contains("importing"));
  EXPECT_EQ(live("m.gguf"), gguf());
}

TEST_F(Import, what_a_person_says_counts) {
  write("m.gguf", gguf());
  ImportFiles import = order("m.gguf");
  import.properties["requires"] = "vram:48";
  import.properties["quantized"] = "mine";
  const Properties p = imported(import);
  EXPECT_EQ(p.at("requires"), "vram:48");
  EXPECT_EQ(p.at("quantized"), "mine");
}

TEST_F(Import, a_part_brings_the_others) {
  write("m-00001-of-00002.gguf", gguf(1, 2));
  EXPECT_NE(error_of(order("m-00001-of-00002.gguf")).find("part 2 of 2 is missing"),
            std::string::npos);
  EXPECT_FALSE(store_->inspect(*DatasetName::parse("models/m")));  // nothing was begun
  write("m-00002-of-00002.gguf", gguf(2, 2));
  write("other.txt", "not of the model");
  const Properties p = imported(order("m-00002-of-00002.gguf"));
  EXPECT_EQ(p.at("parameters"), "64");
  EXPECT_EQ(live("m-00001-of-00002.gguf"), gguf(1, 2));
  EXPECT_EQ(live("other.txt"), "");
}

TEST_F(Import, hashes_as_sha256sum_does) {
  write("one", "abc");
  EXPECT_EQ(imported(order("one", "data")).at("sha256"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Import, a_folder_is_hashed_by_its_files) {
  // sha256sum a b/c | sha256sum, of "abc" and "".
  write("a", "abc");
  write("b/c", "");
  EXPECT_EQ(imported(order(".", "data")).at("sha256"),
            "6eba35d7428180154eea7332bad049a6c0105a4bbd23c3a7542600305d2cbedb");
}

TEST_F(Import, links_of_a_hub_s_cache_become_files) {
  write("blobs/123", gguf());
  fs::create_directories(root_ / "files/snapshots/main");
  fs::create_symlink("../../blobs/123", root_ / "files/snapshots/main/m.gguf");
  const Properties p = imported(order("snapshots/main"));
  EXPECT_EQ(p.at("format"), "gguf");
  EXPECT_EQ(live("m.gguf"), gguf());
}

TEST_F(Import, broken_models_are_refused_and_others_kept) {
  write("cut.gguf", gguf().substr(0, 100));
  EXPECT_NE(error_of(order("cut.gguf")).find("read model file cut.gguf"), std::string::npos);
  write("new.gguf", "GGUF" + le(4, 4));
  EXPECT_EQ(imported(order("new.gguf")).at("unread"), "GGUF version 4 is not known (1 to 3 are)");
}

TEST_F(Import, other_kinds_of_models_are_kept_as_they_are) {
  write("m/weights.pt", "anything");
  const Properties p = imported(order("m"));
  EXPECT_FALSE(p.contains("format"));
  EXPECT_EQ(live("weights.pt"), "anything");
}

TEST_F(Import, code_leaves_out_what_it_is_told_to) {
  write("code/.git/config", "x");
  write("code/.zedignore", "*.log\n");
  write("code/train.log", "x");
  write("code/train.py", "print()");
  fs::create_symlink("train.py", root_ / "files/code/link.py");
  const Properties p = imported(order("code", "code"));
  EXPECT_FALSE(p.contains("sha256"));
  EXPECT_EQ(live("train.py"), "print()");
  EXPECT_EQ(live("train.log"), "");
  EXPECT_EQ(live(".git/config"), "");
  auto path = store_->snapshot_path({*DatasetName::parse("models/m"), "v1"});
  EXPECT_TRUE(fs::is_symlink(*path / "link.py"));
}

TEST_F(Import, a_checkpoint_becomes_a_model) {
  const DatasetName job = *DatasetName::parse("jobs/finetune");
  ASSERT_TRUE(store_->create(job, {{"type", "job"}}));
  const fs::path files = *store_->open_live(job);
  fs::create_directories(files / ".zed");
  fs::create_directories(files / "out");
  std::ofstream(files / ".zed/log") << "a log";
  std::ofstream(files / "train.py") << "print()";
  std::ofstream(files / "out/m.gguf", std::ios::binary) << gguf();
  ImportFiles import = order("");
  import.path = "";
  import.source = job;
  import.source_snapshot = *CheckpointId::parse("11111111111111111111111111111111");
  EXPECT_NE(error_of(import).find("no longer in jobs/finetune"), std::string::npos);
  ASSERT_TRUE(store_->snapshot(*SnapshotName::of(job, "epoch-1"),
                               {{"id", "11111111111111111111111111111111"}}));
  std::ofstream(files / "out/m.gguf", std::ios::binary) << "what came later";
  const Properties p = imported(import);
  EXPECT_EQ(p.at("format"), "gguf");
  EXPECT_EQ(live("out/m.gguf"), gguf());
  EXPECT_EQ(live("train.py"), "print()");
  EXPECT_EQ(live(".zed/log"), "");
  import.dataset = *DatasetName::parse("models/part");
  import.snapshot = *CheckpointId::parse("22222222222222222222222222222222");
  import.properties["uuid"] = "22222222222222222222222222222222";
  import.path = "out";
  EXPECT_EQ(imported(import).at("format"), "gguf");
  import.dataset = *DatasetName::parse("models/outside");
  for (const char* path : {"../..", "/etc", "out/../../x"}) {
    import.path = path;
    EXPECT_NE(error_of(import).find("is not in the snapshot"), std::string::npos) << path;
  }
}

TEST_F(Import, killed_at_any_moment_it_is_finished_at_the_next_start_or_begun_anew) {
  write("one", "abc");
  const ImportFiles import = order("one", "data");
  bool finished = false;
  std::size_t cut_off = 0;
  for (std::uint64_t n = 1; !finished; ++n) {
    ASSERT_LT(n, 200U);
    store_.reset();
    fs::remove_all(root_ / "pool");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = *store::open_dir_store(root_ / "pool", "tank");
      store::disk::set_fault(store::disk::Fault::die, n);
      _exit(import_files(*store, import) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_TRUE(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 137) << WEXITSTATUS(status);
    finished = WEXITSTATUS(status) == 0;
    store_ = *store::open_dir_store(root_ / "pool", "tank");
    ASSERT_TRUE(finish_imports(*store_));
    auto there = store_->inspect(import.dataset);
    const bool complete = there && there->find(import.snapshot) != nullptr;
    if (there) {
      EXPECT_EQ(there->readonly, complete) << n;
      EXPECT_EQ(there->property("importing").empty(), complete) << n;
    }
    cut_off += complete ? 0 : 1;
    EXPECT_FALSE(imported(import).contains("importing")) << n;
    EXPECT_EQ(live("one"), "abc") << n;
  }
  EXPECT_GE(cut_off, 5U);
}

TEST_F(Import, cut_off_between_the_snapshot_and_its_end_it_is_finished_at_the_next_start) {
  // As a store leaves it that takes these steps one by one.
  const ImportFiles import = order("one", "data");
  auto marked = [&](const std::string& name, const std::string& by) {
    const DatasetName dataset = *DatasetName::parse(name);
    Properties properties{{"type", "data"}, {"importing", import.snapshot.str()}};
    ASSERT_TRUE(store_->create(dataset, properties));
    ASSERT_TRUE(store_->snapshot(*SnapshotName::of(dataset, "v1"), {{"id", by}}));
  };
  marked("models/m", import.snapshot.str());
  marked("models/by-hand", "11111111111111111111111111111111");  // somebody else's snapshot
  ASSERT_TRUE(finish_imports(*store_));
  const Dataset done = *store_->inspect(import.dataset);
  EXPECT_TRUE(done.readonly);
  EXPECT_EQ(done.property("importing"), "");
  const Dataset half = *store_->inspect(*DatasetName::parse("models/by-hand"));
  EXPECT_FALSE(half.readonly);
  EXPECT_EQ(half.property("importing"), import.snapshot.str());
}

TEST_F(Import, done_already_is_done) {
  write("one", "abc");
  const ImportFiles import = order("one", "data");
  imported(import);
  EXPECT_EQ(error_of(import), "");
  ImportFiles other = import;
  other.snapshot = *CheckpointId::parse("00000000000000000000000000000001");
  EXPECT_NE(error_of(other).find("is there already"), std::string::npos);
}

ImportFiles order_of_code(const fs::path& folder) {
  ImportFiles import;
  import.dataset = *DatasetName::parse(code_root);
  import.path = folder.string();
  import.snapshot_name = "v1";
  import.properties = {{ "type", "code" }};
  return import;
}

TEST_F(Import, code_is_known_by_its_content) {
  write("one/train.py", "print()");
  write("one/lib/util.py", "x = 1");
  write("one/notes.txt", "not for the fleet");
  write("one/.zedignore", "notes.txt\n.zedignore\n");
  write("two/train.py", "print()");
  write("two/lib/util.py", "x = 1");
  auto one = import_files(*store_, order_of_code(root_ / "files/one"));
  auto two = import_files(*store_, order_of_code(root_ / "files/two"));
  ASSERT_TRUE(one && two) << one.error().describe();
  EXPECT_EQ(one->id, two->id);
  auto kept = store_->inspect(code_dataset(one->id));
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->uuid, DatasetId{one->id.bytes});
  EXPECT_TRUE(kept->readonly);
  EXPECT_EQ(kept->snapshots.size(), 1U);

  fs::permissions(root_ / "files/two/train.py", fs::perms::owner_exec, fs::perm_options::add);
  auto program = import_files(*store_, order_of_code(root_ / "files/two"));
  ASSERT_TRUE(program);
  EXPECT_NE(program->id, one->id);
  write("two/train.py", "print(2)");
  auto edited = import_files(*store_, order_of_code(root_ / "files/two"));
  ASSERT_TRUE(edited);
  EXPECT_NE(edited->id, program->id);
}

TEST_F(Import, code_that_was_cut_off_is_packed_anew) {
  write("one/train.py", "print()");
  auto whole = import_files(*store_, order_of_code(root_ / "files/one"));
  ASSERT_TRUE(whole);
  const DatasetName name = code_dataset(whole->id);
  ASSERT_TRUE(store_->destroy(name));
  ASSERT_TRUE(store_->create(name, {{"importing", whole->id.str()}, {"uuid", whole->id.str()}}));
  auto again = import_files(*store_, order_of_code(root_ / "files/one"));
  ASSERT_TRUE(again) << again.error().describe();
  EXPECT_EQ(again->id, whole->id);
  auto files = store_->snapshot_path({name, "v1"});
  ASSERT_TRUE(files);
  EXPECT_TRUE(fs::exists(*files / "train.py"));
}

}  // namespace
}  // namespace zed::bin
