#pragma once
// Channel programs: Lua that OpenZFS runs inside one transaction group, so that what it compares is
// what it changes. Each checks everything that can be checked before its first change. They return
// tables of words and errnos; numbers that do not fit a signed 64-bit integer never pass through.

namespace zed::store::zfs {

/// Arguments: full names of snapshots. Changes nothing (`zfs program -n`). Returns the user
/// properties that are each one's own, by its name; those that are gone are left out. Of many
/// snapshots this is several times faster than `zfs get all`, which works out and prints thirty
/// more of each.
inline constexpr char own_properties_program[] = R"lua(
args = ...
found = {}
for i = 1, #args["argv"] do
  local snapshot = args["argv"][i]
  if zfs.exists(snapshot) then
    local own = {}
    for name, value, source in zfs.list.user_properties(snapshot) do
      if source == snapshot or source == "$recvd" then own[name] = value end
    end
    found[snapshot] = own
  end
end
return found
)lua";

/// Arguments: dataset, how ("take": make the snapshot; "dress": it is there; "none"), snapshot's
/// full name, parent snapshot's full name or "", its guid as a signed number, then four lists, each
/// its length before it: expected (property, value), properties for the snapshot (property, value),
/// properties for the dataset (property, value), properties to remove from it.
/// Returns {what="done"}, {what="stale", property=, found=}, {what="parent"}, {what="gone"} or
/// {what="failed", at=, errno=}.
inline constexpr char apply_program[] = R"lua(
args = ...
argv = args["argv"]
at = 0
function take() at = at + 1; return argv[at] end
function take_pairs()
  local list = {}
  local n = tonumber(take())
  for i = 1, n do
    local key = take()
    list[i] = {key, take()}
  end
  return list, n
end
dataset = take()
how = take()
snapshot = take()
parent = take()
parent_guid = take()
expected, n_expected = take_pairs()
dress, n_dress = take_pairs()
change, n_change = take_pairs()
n_remove = tonumber(take())
remove = {}
for i = 1, n_remove do remove[i] = take() end

function failed(where, number) return {what = "failed", at = where, errno = number} end

if not zfs.exists(dataset) then return {what = "gone"} end
for i = 1, n_expected do
  local found, source = zfs.get_prop(dataset, expected[i][1])
  if source ~= dataset and source ~= "$recvd" then found = nil end
  if found ~= expected[i][2] then
    return {what = "stale", property = expected[i][1], found = found or ""}
  end
end
if parent ~= "" then
  if not zfs.exists(parent) then return {what = "parent"} end
  if tostring(zfs.get_prop(parent, "guid")) ~= parent_guid then return {what = "parent"} end
end
if how == "take" then
  local e = zfs.check.snapshot(snapshot)
  if e ~= 0 then return failed(snapshot, e) end
end
if how == "dress" and not zfs.exists(snapshot) then return failed(snapshot, ENOENT) end
for i = 1, n_change do
  local e = zfs.check.set_prop(dataset, change[i][1], change[i][2])
  if e ~= 0 then return failed(change[i][1], e) end
end
for i = 1, n_remove do
  local e = zfs.check.inherit(dataset, remove[i])
  if e ~= 0 then return failed(remove[i], e) end
end

if how == "take" then
  local e = zfs.sync.snapshot(snapshot)
  if e ~= 0 then return failed(snapshot, e) end
end
for i = 1, n_dress do
  local e = zfs.sync.set_prop(snapshot, dress[i][1], dress[i][2])
  if e ~= 0 then
    if how == "take" then zfs.sync.destroy(snapshot) end
    return failed(dress[i][1], e)
  end
end
for i = 1, n_change do
  local e = zfs.sync.set_prop(dataset, change[i][1], change[i][2])
  if e ~= 0 then return failed(change[i][1], e) end
end
for i = 1, n_remove do
  local e = zfs.sync.inherit(dataset, remove[i])
  if e ~= 0 then return failed(remove[i], e) end
end
return {what = "done"}
)lua";

/// Arguments: dataset. It is unmounted and has no children. Destroys it with its snapshots, or
/// nothing: returns {what="done"}, {what="gone"}, or {what="failed", at=, errno=}.
inline constexpr char destroy_program[] = R"lua(
args = ...
dataset = args["argv"][1]
function failed(where, number) return {what = "failed", at = where, errno = number} end
if not zfs.exists(dataset) then return {what = "gone"} end
for child in zfs.list.children(dataset) do return failed(child, EBUSY) end
names = {}
n = 0
for name in zfs.list.snapshots(dataset) do
  n = n + 1
  names[n] = name
end
for i = 1, n do
  local e = zfs.check.destroy(names[i])
  if e ~= 0 then return failed(names[i], e) end
end
for i = 1, n do
  local e = zfs.sync.destroy(names[i])
  if e ~= 0 then return failed(names[i], e) end
end
local e = zfs.sync.destroy(dataset)
if e ~= 0 then return failed(dataset, e) end
return {what = "done"}
)lua";

}  // namespace zed::store::zfs
