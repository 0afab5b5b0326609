import * as google from "@pulumi/google-native";

// One identity, one role on a backend bucket.
const viewer = new google.compute.v1.BackendBucketIamMember("viewer", {
    name: "logs",
    role: "roles/compute.viewer",
    member: "user:ann@example.com",
});

// The whole list of identities that have one role on an edge cache origin.
new google.networkservices.v1.EdgeCacheOriginIamBinding("editors", {
    name: "video",
    role: "roles/networkservices.edgeCacheAdmin",
    members: ["group:video@example.com", "user:ann@example.com"],
});

// One identity, one role on a migration job, until a date.
new google.datamigration.v1.MigrationJobIamMember("operator", {
    name: "orders",
    role: "roles/datamigration.admin",
    member: "user:ann@example.com",
    condition: {
        title: "until the move is over",
        expression: 'request.time < timestamp("2027-01-01T00:00:00Z")',
    },
});

export const id = viewer.id;
export const project = viewer.project;
