deploy :fleet, pool: "tank" do
  job :train do
    prefer fn node -> node.gpu end
    priority 3000
  end
end
