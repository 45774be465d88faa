"""Running a work list on a device: resources, pipelines, prepack, recording, execution."""
