import pulumi
from pulumi_google_native.compute import v1 as compute
from pulumi_google_native.datamigration import v1 as datamigration
from pulumi_google_native.iam import v1 as iam
from pulumi_google_native.networkservices import v1 as networkservices

# One identity, one role on a backend bucket.
viewer = compute.BackendBucketIamMember(
    "viewer",
    name="logs",
    role="roles/compute.viewer",
    member="user:ann@example.com",
)

# The whole list of identities that have one role on an edge cache origin.
networkservices.EdgeCacheOriginIamBinding(
    "editors",
    name="video",
    role="roles/networkservices.edgeCacheAdmin",
    members=["group:video@example.com", "user:ann@example.com"],
)

# One identity, one role on a migration job, until a date.
datamigration.MigrationJobIamMember(
    "operator",
    name="orders",
    role="roles/datamigration.admin",
    member="user:ann@example.com",
    condition=iam.ConditionArgs(
        title="until the move is over",
        expression='request.time < timestamp("2027-01-01T00:00:00Z")',
    ),
)

pulumi.export("id", viewer.id)
pulumi.export("project", viewer.project)
