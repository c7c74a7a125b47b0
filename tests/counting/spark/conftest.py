"""One cluster for all tests: to start its processes takes most of their time."""

import pytest

from deniable.counting.spark.spark_engine import SparkEngine
from spark_cluster import cluster


@pytest.fixture(scope="session")
def cluster_folder(tmp_path_factory):
    """The folder of the cluster's logs and blocks."""
    return tmp_path_factory.mktemp("cluster") / "c"


@pytest.fixture(scope="session")
def engine(cluster_folder):
    with cluster(cluster_folder) as session:
        yield SparkEngine(session)
