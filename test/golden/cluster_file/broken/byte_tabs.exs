deploy :fleet do
	node :server do
		gpu	"A100",	vrm: 80
	end
end
