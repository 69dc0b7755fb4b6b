deploy :"my-fleet.2" do
  node :zed@server
  node :"zed@work-station.lan"
  node :Macbook
  node :"4090box"
  model :"llama-70b"
  model :llama70b
  job :"train-001"
  job :llama70b do
    model :"llama-70b"
    after :"train-001"
    prefer node: :zed@server, label: "fast"
  end
  replicate :"models/llama-70b" do
    from :"zed@server"
    to :Macbook
  end
end
