deploy :fleet, pool: "tank" do
  job "train"
  job :"a/b"
  job :""
  job :".hidden"
  job nil
end
