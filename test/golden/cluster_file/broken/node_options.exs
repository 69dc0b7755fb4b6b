deploy :fleet, pool: "tank" do
  node :a, address: "not a host", pool: :tank, store: :ext4, run_as: "root"
  node :b, adress: "x", store: "zfs", run_as: "a b"
  node :c, address: "host:99999"
  node :d, pool: "a", pool: "b"
end
