deploy :fleet, pool: "tank" do
  node :1st
  node :-x
  node :
  job :é
end
