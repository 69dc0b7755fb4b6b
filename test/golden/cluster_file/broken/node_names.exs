deploy :fleet, pool: "tank" do
  node "server"
  node :"my server"
  node :"-x"
  node Server
  node 7
  node
  node :a, :b
end
