deploy :fleet, pool: "tank" do
  "node"
  :server
  48
  pool: "tank"
  Zed.DSL
  [1]
  do
end
